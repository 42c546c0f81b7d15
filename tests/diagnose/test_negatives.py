"""Logs without an Ascend problem: whatever they complain about, none of them gets a diagnosis."""

from __future__ import annotations

from pathlib import Path
from typing import Mapping

import pytest
from helpers.rows import sampled

from envtune.diagnose import diagnose

LOGS: Mapping[str, str] = {
    "training that went well": """\
2024-05-01 09:00:00,001 INFO train.py:31 world size 8, MASTER_ADDR=10.0.0.1 MASTER_PORT=29500
2024-05-01 09:00:04,120 INFO train.py:55 epoch 0 step 10 loss 6.9012 lr 0.1 error 0.0 top1 0.12
2024-05-01 09:00:05,377 INFO train.py:55 epoch 0 step 20 loss 6.8120 lr 0.1 error_rate=0.99 fps 1800.2
UserWarning: The given NumPy array is not writable, and PyTorch does not support non-writable tensors.
saved checkpoint to out/epoch_0.pt (timeout 0, retries 0)
""",
    "a GPU that ran out of memory": """\
Traceback (most recent call last):
  File "train.py", line 40, in <module>
    loss.backward()
torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 23.69 GiB total capacity; 21.30
 GiB already allocated; 1.10 GiB free; 22.00 GiB reserved in total by PyTorch)
""",
    "NCCL that waited": """\
[rank1]:[E ProcessGroupNCCL.cpp:607] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5,
 OpType=ALLREDUCE, NumelIn=1, Timeout(ms)=600000) ran for 600123 milliseconds before timing out.
terminate called after throwing an instance of 'std::runtime_error'
  what():  NCCL communicator was aborted on rank 1.
node1:118:152 [0] NCCL WARN Net : Connect to 10.0.0.2<45613> failed : Connection refused
RuntimeError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1269, unhandled system error
""",
    "a CUDA kernel that failed": """\
RuntimeError: CUDA error: device-side assert triggered
CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.
For debugging consider passing CUDA_LAUNCH_BLOCKING=1.
../aten/src/ATen/native/cuda/Loss.cu:250: nll_loss_forward_reduce_cuda_kernel_2d: block: [0,0,0], thread: [4,0,0]
 Assertion `t >= 0 && t < n_classes` failed.
""",
    "a package that pip cannot find": """\
Looking in indexes: https://pypi.org/simple
ERROR: Could not find a version that satisfies the requirement nonexistent-package==9.9 (from versions: none)
ERROR: No matching distribution found for nonexistent-package==9.9
WARNING: Retrying (Retry(total=4, connect=None)) after connection broken by 'NewConnectionError: Failed to establish a
 new connection: [Errno -2] Name or service not known': /simple/requests/
""",
    "another package that pip cannot build": """\
Building wheel for psycopg2 (setup.py): started
  error: subprocess-exited-with-error
      Error: pg_config executable not found.
      pg_config is required to build psycopg2 from source.
ERROR: Failed building wheel for psycopg2
""",
    "the kernel's messages": """\
[    0.000000] Linux version 5.10.0-60.18.0.50.oe2203.aarch64 (root@buildhost) (gcc 10.3.1)
[   12.345678] EXT4-fs error (device sda1): ext4_lookup:1855: inode #2: comm ls: deleted inode referenced: 12
[  100.000123] Out of memory: Killed process 4242 (postgres) total-vm:8123456kB, anon-rss:7000000kB
[  101.555555] INFO: task kworker/u8:2:77 blocked for more than 120 seconds.
[  120.000001] hns3 0000:7d:00.0 eth0: link down
[  130.000001] EDAC MC0: 1 CE memory read error on CPU_SrcID#0_MC#0_Chan#1_DIMM#0
""",
    "a web server": """\
2024/05/01 10:00:00 [error] 1234#1234: *5 connect() failed (111: Connection refused) while connecting to upstream,
 client: 10.0.0.9, server: example.org, request: "GET /api HTTP/1.1", upstream: "http://127.0.0.1:8000/api"
2024/05/01 10:00:05 [error] 1234#1234: *6 upstream timed out (110: Connection timed out) while reading response header
10.0.0.9 - - [01/May/2024:10:00:06 +0000] "GET /507015 HTTP/1.1" 500 107002 "-" "curl/7.88"
nginx: [emerg] bind() to 0.0.0.0:80 failed (98: Address already in use)
""",
    "a Java program": """\
2024-05-01 10:00:00.123 ERROR 4711 --- [main] o.s.boot.SpringApplication : Application run failed
java.net.BindException: Address already in use (Bind failed)
	at java.base/java.net.PlainSocketImpl.socketBind(Native Method)
Caused by: java.lang.OutOfMemoryError: Java heap space
	at com.example.te.Compiler.run(Compiler.java:207)
Exception in thread "main" java.net.UnknownHostException: db: Name or service not known
""",
    "a mistake in the user's own script on an Ascend host": """\
import torch_npu done, ASCEND_OPP_PATH=/usr/local/Ascend/ascend-toolkit/latest/opp, device npu:0
Traceback (most recent call last):
  File "train.py", line 12, in <module>
    print(config["model"]["depht"])
KeyError: 'depht'
""",
    "another mistake, in shapes, on an Ascend host": """\
[rank0]: Traceback (most recent call last):
[rank0]:   File "/opt/conda/lib/python3.9/site-packages/torch_npu/contrib/module.py", line 30, in forward
[rank0]: RuntimeError: mat1 and mat2 shapes cannot be multiplied (64x512 and 768x10)
""",
    "a model that cannot be downloaded": """\
requests.exceptions.ConnectionError: (MaxRetryError("HTTPSConnectionPool(host='huggingface.co', port=443): Max retries
 exceeded with url: /bert-base-uncased/resolve/main/config.json (Caused by ConnectTimeoutError('timed out'))"))
OSError: We couldn't connect to 'https://huggingface.co' to load this file, couldn't find it in the cached files and it
 looks like bert-base-uncased is not the path to a directory containing a file named config.json.
""",
    "a plog in which all is well": """\
[INFO] RUNTIME(4711,python):2024-05-01-10:00:00.100.200 [api_c.cc:10]4711 rtSetDevice: device_id=0, error=0, ret=0
[INFO] HCCL(4711,python):2024-05-01-10:00:00.200.300 [topoinfo_exchange.cc:91][4711] HCCL_CONNECT_TIMEOUT set by
 default to [120]s, HCCL_EXEC_TIMEOUT set by default to [1836]s
[EVENT] GE(4711,python):2024-05-01-10:00:01.100.200 [graph.cc:7]4711 op compile success, error num 0, failed num 0
[INFO] TDT(4711,python):2024-05-01-10:00:01.300.200 [process.cc:9]4711 no error, retry times 0, timeout 0
[INFO] HCCL(4711,python):2024-05-01-10:00:02.000.000 [heartbeat.cc:12][4711] heartbeat is ok, lost num 0, stuck num 0
[WARNING] PROFILING(4711,python):2024-05-01-10:00:03.000.000 [msprof.cc:5]4711 profiler is not started
""",
    "a shell script and a full disk": """\
./run.sh: line 12: /data/out/train.txt: No space left on device
cp: cannot stat 'model.om': No such file or directory
bash: npu-smi: command not found
make: *** [Makefile:12: all] Error 2
""",
    "a data loader whose worker was killed": """\
RuntimeError: DataLoader worker (pid 4321) is killed by signal: Killed.
RuntimeError: unable to open shared memory object </torch_4321_1> in read-write mode: Too many open files (24)
ConnectionResetError: [Errno 104] Connection reset by peer
BrokenPipeError: [Errno 32] Broken pipe
""",
    "a database and a container engine": """\
docker: Error response from daemon: driver failed programming external connectivity on endpoint web: Bind for
 0.0.0.0:8080 failed: port is already allocated.
FATAL:  password authentication failed for user "postgres"
E0501 10:00:00.123456       1 reflector.go:138] Failed to watch *v1.Pod: Get "https://10.96.0.1:443": i/o timeout
kubelet: E0501 10:00:01 pod_workers.go:191] Error syncing pod, skipping: failed to "StartContainer" CrashLoopBackOff
""",
    "torchrun on GPUs, one rank killed": """\
WARNING:torch.distributed.elastic.multiprocessing.api:Sending process 812 closing signal SIGTERM
ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -9) local_rank: 1 (pid: 813) of binary: python
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
Root Cause (first observed failure):
[0]:
  time      : 2024-05-01_10:00:00
  host      : gpu1
  rank      : 1 (local_rank: 1)
  exitcode  : -9 (pid: 813)
  traceback : Signal 9 (SIGKILL) received by PID 813
NCCL version 2.18.1+cuda12.1
""",
    "torchrun ends the other ranks after a mistake in the script": """\
import torch_npu; device npu:1
[rank1]: KeyError: 'weight'
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
Failures:
[1]:
  rank      : 0 (local_rank: 0)
  exitcode  : -15 (pid: 812)
  traceback : Signal 15 (SIGTERM) received by PID 812
Root Cause (first observed failure):
[0]:
  time      : 2024-05-01_10:00:00
  host      : npu1
  rank      : 1 (local_rank: 1)
  exitcode  : 1 (pid: 813)
""",
    "TensorFlow on a CPU": """\
2024-05-01 10:00:00.000000: W tensorflow/stream_executor/platform/default/dso_loader.cc:64] Could not load dynamic
 library 'libcudart.so.11.0'; dlerror: libcudart.so.11.0: cannot open shared object file: No such file or directory
2024-05-01 10:00:00.100000: E tensorflow/stream_executor/cuda/cuda_driver.cc:318] failed call to cuInit: UNKNOWN ERROR
2024-05-01 10:00:01.000000: I tensorflow/core/platform/cpu_feature_guard.cc:193] This TensorFlow binary is optimized
""",
}


@pytest.mark.parametrize("name", sampled(LOGS, 2))
def test_no_false_alarm(name: str, tmp_path: Path) -> None:
    log = tmp_path / "some.log"
    log.write_text(LOGS[name])
    found = diagnose([str(log)], check=False)
    assert [d.candidate.entry.id for d in found.diagnoses] == []


def test_none_of_them_together_either(tmp_path: Path) -> None:
    """What one log requires and another one says must not add up to an alarm. A killed rank, a full disk or too many
    open files beside a log of an Ascend job are one, whatever else lies there."""
    of_the_host = ("one rank killed", "a full disk", "a data loader")
    for number, (name, text) in enumerate(LOGS.items()):
        if not any(words in name for words in of_the_host):
            (tmp_path / f"{number}.log").write_text(text)
    found = diagnose([str(tmp_path)], check=False)
    assert [d.candidate.entry.id for d in found.diagnoses] == []


FAILED_ON_A_GPU = """\
RuntimeError: The detected CUDA version (11.8) mismatches the version that was used to compile PyTorch (12.1).
ImportError: libcudart.so.11.0: cannot open shared object file: No such file or directory
RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation
torch.distributed.elastic.multiprocessing.api: [ERROR] failed (exitcode: -9) local_rank: 0 (pid: 4711)
ImportError: flash_attn_2_cuda.so: undefined symbol: _ZN5torch3jit17parseSchemaOrNameERKSs
"""


@pytest.mark.parametrize(
    ("line", "used"),
    [
        ("- PyTorch NPU available: False", False),
        ("Namespace(use_npu=False, use_cuda=True)", False),
        ("usage: train.py [-h] [--device {cpu,cuda,npu,xpu}] [--backend {nccl,gloo,hccl}]", False),
        ("--distributed-backend: one of hccl, gloo, nccl", False),
        ("    elif is_torch_npu_available():", False),
        ("INFO sorting shards by length, ascending=True", False),
        ("env: RAY_EXPERIMENTAL_NOSET_ASCEND_RT_VISIBLE_DEVICES=1 NVIDIA_VISIBLE_DEVICES=all", False),
        ("- PyTorch NPU available: True", True),
        ("Setting ds_accelerator to npu; device: npu", True),
        ("import torch_npu", True),
        ("ASCEND_RT_VISIBLE_DEVICES=0,1", True),
        ("backend='hccl', world_size=8", True),
    ],
)
def test_a_program_that_could_use_an_npu_does_not_show_one(line: str, used: bool, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text(f"{line}\n{FAILED_ON_A_GPU}")
    found = diagnose([str(log)], check=False)
    ids = {d.candidate.entry.id for d in found.diagnoses if d.candidate.strong}
    assert ids >= {"I118", "O114", "H117"} if used else ids == set()
