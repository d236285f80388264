"""A real SLURM on one machine, over loopback, in a folder of its own: munge, one controller, one node."""

import os
import shutil
import signal
import socket
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

NEEDED = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scancel")
PATH = f"{os.environ['PATH']}:/usr/sbin"
CONF = """
ClusterName=solo
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmdPort={node_port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SchedulerType=sched/backfill
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
ReturnToService=2
GresTypes=gpu
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory=6000 Gres=gpu:1 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def lacking() -> str:
    """Why SLURM can't be started here; empty where it can."""
    if os.geteuid() != 0:
        return "SLURM's daemons are started as root here, and this is none"
    absent = [name for name in NEEDED if shutil.which(name, path=PATH) is None]
    return f"{', '.join(absent)} not installed: apt-get install slurm-wlm munge" if absent else ""


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def _wait_for(condition, seconds: float, what: str) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"{what} after {seconds} s"
        time.sleep(0.2)


@contextmanager
def cluster(folder: Path):
    """Start everything; yields the environment variables that its commands need."""
    for name in ("state", "spool"):
        (folder / name).mkdir(parents=True)
    host = socket.gethostname().split(".")[0]
    conf = folder / "slurm.conf"
    ports = {"port": _free_port(), "node_port": _free_port()}
    conf.write_text(CONF.format(host=host, folder=folder, cpus=os.cpu_count(), **ports))
    (folder / "gres.conf").write_text("Name=gpu File=/dev/null\n")
    srun = folder / "bin" / "srun"  # a job's environment has no SLURM_CONF, and /etc/slurm is not ours
    srun.parent.mkdir()
    srun.write_text(f'#!/bin/sh\nSLURM_CONF={conf} exec {shutil.which("srun", path=PATH)} "$@"\n')
    srun.chmod(0o755)
    key = folder / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o400)
    folder.chmod(0o755)
    variables = {**os.environ, "PATH": PATH, "SLURM_CONF": str(conf)}
    munge = ["munged", "--foreground", "--force", f"--key-file={key}", f"--socket={folder}/munge.socket"]
    munge += [f"--pid-file={folder}/munge.pid", f"--log-file={folder}/munge.log", f"--seed-file={folder}/munge.seed"]
    running = []

    def start(*command):
        log = (folder / f"{command[0]}.out").open("w")
        running.append(subprocess.Popen(command, env=variables, stdout=log, stderr=log))

    def idle() -> bool:
        done = subprocess.run(["sinfo", "-h", "-o", "%t"], env=variables, capture_output=True, text=True)
        return done.stdout.strip() == "idle"

    try:
        start(*munge)
        _wait_for((folder / "munge.socket").exists, 20, "munge has no socket")
        start("slurmctld", "-D", "-f", str(conf))
        start("slurmd", "-D", "-f", str(conf))
        _wait_for(idle, 60, "the node isn't idle")
        yield {"PATH": f"{srun.parent}:{PATH}", "SLURM_CONF": str(conf)}
    finally:
        for process in reversed(running):
            process.send_signal(signal.SIGTERM)
        for process in reversed(running):
            process.wait(timeout=30)
