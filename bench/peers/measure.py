"""What the training jobs of the peers share: options, the timed loop, and the JSON line that it ends with."""
import json
import statistics
import sys
import time


def add_arguments(parser, steps, block, warmup):
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--steps", type=int, default=steps, help="measured steps")
    parser.add_argument("--block", type=int, default=block, help="steps of one time measurement")
    parser.add_argument("--warmup", type=int, default=warmup, help="steps before the measurement; compiling happens here")


def peak_memory():
    """Peak resident bytes of this process."""
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith("VmHWM"))


def measure(job, step, options, imported, version):
    """Runs step(0), step(1), … and prints the line; `imported`: peak memory after the imports."""
    started = time.perf_counter()
    for i in range(options.warmup):
        step(i)
    warmup_seconds = time.perf_counter() - started
    rates, cpu, done = [], time.process_time(), options.warmup
    while done < options.warmup + options.steps:
        started = time.perf_counter()
        for i in range(done, done + options.block):
            loss = step(i)
        rates.append(options.block * options.batch / (time.perf_counter() - started))
        done += options.block
    cpu = (time.process_time() - cpu) / (done - options.warmup)
    print(json.dumps({
        "peer": "pytorch", "job": job, "samples_per_second": round(statistics.median(rates), 1),
        "min": round(min(rates), 1), "max": round(max(rates), 1), "cpu_ms_per_step": round(cpu * 1e3, 2),
        "peak_memory_bytes": peak_memory(), "memory_after_import_bytes": imported, "warmup_seconds": round(warmup_seconds, 2),
        "last_loss": loss.item(), "torch": version, "python": sys.version.split()[0], "settings": vars(options)}))
