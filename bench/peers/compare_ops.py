"""Single ops beside PyTorch's: `ops_bench` and `ops_torch.py` in turn, and one table, sorted by ratio.

    python3 bench/peers/compare_ops.py --python VENV/bin/python [--rounds 3] [--filter REGEX] [--min-time SECONDS]

Both use one thread and report CPU time in microseconds; each figure is the median over the rounds. A ratio below 1 means that
we are faster.
"""
import argparse
import json
import os
import statistics
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def ours(options):
    command = [options.bench, "--threads=1", f"--benchmark_filter={options.filter or '.'}", "--benchmark_format=json",
               f"--benchmark_min_time={options.min_time}"]
    out = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout)
    return {b["name"].removesuffix("/real_time"): b["cpu_time"] / 1e3 for b in out["benchmarks"]}


def theirs(options):
    command = [options.python, os.path.join(ROOT, "bench/peers/ops_torch.py"), f"--filter={options.filter}",
               f"--min-time={options.min_time}"]
    out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    return {name: float(time) for name, time in (line.split("\t") for line in out.stdout.splitlines())}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--python", required=True, help="the Python that has torch")
    p.add_argument("--bench", default=os.path.join(ROOT, "build/release/bin/ops_bench"))
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--filter", default="", help="part of the names")
    p.add_argument("--min-time", type=float, default=0.05, help="of each benchmark in a round")
    options = p.parse_args()
    rounds = [(ours(options), theirs(options)) for _ in range(options.rounds)]
    rows, single = [], []
    for name in rounds[0][0].keys() | rounds[0][1].keys():
        if not all(name in side for sides in rounds for side in sides):
            single.append(name)
            continue
        a, b = (statistics.median(r[i][name] for r in rounds) for i in (0, 1))
        rows.append((a / b, name, a, b))
    print(f"{'op':42} {'ours µs':>10} {'theirs µs':>10} {'ratio':>6}")
    for ratio, name, a, b in sorted(rows):
        print(f"{name:42} {a:10.1f} {b:10.1f} {ratio:6.2f}")
    if single:
        print("only on one side:", ", ".join(sorted(single)))


if __name__ == "__main__":
    main()
