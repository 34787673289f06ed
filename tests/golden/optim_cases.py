"""Golden cases of optim: five steps of each optimizer, the learning rates of each schedule, clipping."""
import numpy as np
import torch
from torch.optim import lr_scheduler as schedules

from golden_format import File, normal

STEPS = 5


def optimizers():
    f = File("optim")

    def steps(name, make, lr):
        """in<i>: parameters; dy<i>: their gradients, step by step; lr: of each step; out<i>: values after each step."""
        rng = f.rng(name)
        shapes = [(3, 4), (5,)]
        parameters = [torch.nn.Parameter(torch.from_numpy(normal(*s)(rng))) for s in shapes]
        gradients = [torch.from_numpy(normal(STEPS, *s)(rng)) for s in shapes]
        gradients[1][1] = 0  # a step without a gradient's worth
        rates = [lr, lr, lr, lr / 2, lr / 2]
        for i, (p, g) in enumerate(zip(parameters, gradients)):
            f.put(f"{name}/in{i}", p.detach().clone())
            f.put(f"{name}/dy{i}", g)
        f.put(f"{name}/lr", np.array(rates))
        optimizer = make(parameters)
        after = [[] for _ in parameters]
        for step in range(STEPS):
            optimizer.param_groups[0]["lr"] = rates[step]
            for i, p in enumerate(parameters):
                p.grad = gradients[i][step].clone()
            optimizer.step()
            for i, p in enumerate(parameters):
                after[i].append(p.detach().clone())
        for i, history in enumerate(after):
            f.put(f"{name}/out{i}", torch.stack(history))

    o = torch.optim
    steps("sgd/plain", lambda p: o.SGD(p), 0.1)
    steps("sgd/momentum", lambda p: o.SGD(p, momentum=0.9), 0.1)
    steps("sgd/nesterov", lambda p: o.SGD(p, momentum=0.9, nesterov=True), 0.1)
    steps("sgd/weight_decay", lambda p: o.SGD(p, momentum=0.8, weight_decay=0.01), 0.1)
    steps("sgd/dampening", lambda p: o.SGD(p, momentum=0.9, dampening=0.3), 0.1)
    steps("adam/plain", lambda p: o.Adam(p), 0.01)
    steps("adam/weight_decay", lambda p: o.Adam(p, betas=(0.8, 0.95), eps=1e-6, weight_decay=0.1), 0.01)
    steps("adam/amsgrad", lambda p: o.Adam(p, amsgrad=True), 0.01)
    steps("adamw/plain", lambda p: o.AdamW(p, weight_decay=0.01), 0.01)
    steps("adamw/settings", lambda p: o.AdamW(p, betas=(0.85, 0.9), eps=1e-5, weight_decay=0.2), 0.02)
    steps("adamw/amsgrad", lambda p: o.AdamW(p, weight_decay=0.01, amsgrad=True), 0.01)
    steps("rmsprop/plain", lambda p: o.RMSprop(p), 0.01)
    steps("rmsprop/centered", lambda p: o.RMSprop(p, centered=True), 0.01)
    steps("rmsprop/momentum", lambda p: o.RMSprop(p, momentum=0.9, alpha=0.95), 0.01)
    steps("rmsprop/everything", lambda p: o.RMSprop(p, momentum=0.5, centered=True, weight_decay=0.1, eps=1e-6), 0.01)
    steps("adagrad/plain", lambda p: o.Adagrad(p), 0.1)
    steps("adagrad/settings", lambda p: o.Adagrad(p, lr_decay=0.1, weight_decay=0.05, initial_accumulator_value=0.2, eps=1e-8), 0.1)
    steps("adadelta/plain", lambda p: o.Adadelta(p), 1.0)
    steps("adadelta/settings", lambda p: o.Adadelta(p, rho=0.8, eps=1e-5, weight_decay=0.1), 0.5)
    return f


def schedule():
    f = File("schedule")

    def rates(name, lr, make, steps=20):
        """lr: the rate of step 0, 1, …"""
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=lr)
        s = make(optimizer)
        history = []
        for _ in range(steps):
            history.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            s.step()
        f.put(f"{name}/lr", np.array(history, dtype=np.float64))

    rates("step", 0.5, lambda o: schedules.StepLR(o, step_size=4, gamma=0.7))
    rates("multi_step", 0.5, lambda o: schedules.MultiStepLR(o, milestones=[2, 7, 8], gamma=0.1))
    rates("exponential", 0.5, lambda o: schedules.ExponentialLR(o, gamma=0.9))
    rates("cosine", 0.5, lambda o: schedules.CosineAnnealingLR(o, T_max=19, eta_min=0.01))
    rates("warmup", 0.5, lambda o: schedules.LinearLR(o, start_factor=0.1, total_iters=5))
    rates("one_cycle", 0.02, lambda o: schedules.OneCycleLR(o, max_lr=0.5, total_steps=20, cycle_momentum=False), 20)
    rates("one_cycle_settings", 0.02, lambda o: schedules.OneCycleLR(
        o, max_lr=0.5, total_steps=20, pct_start=0.4, div_factor=10, final_div_factor=100, cycle_momentum=False), 20)
    rates("chain", 0.5, lambda o: schedules.SequentialLR(
        o, [schedules.LinearLR(o, start_factor=0.1, total_iters=5), schedules.CosineAnnealingLR(o, T_max=15)], milestones=[5]))
    return f


def clip():
    f = File("clip")

    def clipped(name, run):
        """in<i>: gradients; norm: before clipping, where by norm; out<i>: after."""
        rng = f.rng(name)
        parameters = [torch.nn.Parameter(torch.zeros(s, dtype=torch.float64)) for s in [(3, 4), (5,)]]
        for i, p in enumerate(parameters):
            p.grad = torch.from_numpy(normal(*p.shape)(rng))
            f.put(f"{name}/in{i}", p.grad.clone())
        norm = run(parameters)
        if norm is not None:
            f.put(f"{name}/norm", norm)
        for i, p in enumerate(parameters):
            f.put(f"{name}/out{i}", p.grad)

    clipped("norm/shortened", lambda p: torch.nn.utils.clip_grad_norm_(p, 1.0))
    clipped("norm/left_alone", lambda p: torch.nn.utils.clip_grad_norm_(p, 100.0))
    clipped("value", lambda p: torch.nn.utils.clip_grad_value_(p, 0.5))
    return f


def files():
    return [optimizers(), schedule(), clip()]
