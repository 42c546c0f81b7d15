"""Changes of the settings, files, packages and variables of healthy recorded hosts.

Each row is (host, what is changed, the changed mapping, the ids that flip).
"""

from __future__ import annotations

from typing import Any, Mapping

B = "910b-openeuler2203-cann82"
A = "910a-openeuler2003-cann502"
N = "a3-openeuler2203-cann85"
C = "container-without-driver"
TOOLKIT = "/usr/local/Ascend/ascend-toolkit"
FREQ = "/sys/devices/system/cpu/cpufreq"
CPU = "/sys/devices/system/cpu"
SLICE = "/sys/fs/cgroup/user.slice/user-0.slice"
LIMITS = (
    "Limit                     Soft Limit           Hard Limit           Units\n"
    "Max core file size        0                    unlimited            bytes\n"
    "Max processes             1030978              1030978              processes\n"
    "Max open files            {files:<20} 1048576              files\n"
    "Max locked memory         {locked:<20} unlimited            bytes\n"
)
SITE_B = "/usr/local/python3.10.13/lib/python3.10/site-packages"
SITE_A = "/usr/local/python3.7.5/lib/python3.7/site-packages"


ATTESTED_OTHERWISE = '{"bios.power_policy": {"value": "Efficiency", "by": "lab", "date": "2025-11-03"}}'
OTHER_FIRMWARE = "Version=1.2.3.4\nfirmware_version=1.0\npackage_version=19.0\ncompatible_version_drv=[19.0,19.0.]\n"
HAL = "/usr/local/Ascend/driver/lib64/driver/libascend_hal.so"
X86 = "7f454c4602010100000000000000000003003e00"
UOS = "ID=uos\nVERSION_ID=20\n"
IDLE_3 = "| No running processes found in NPU 3                                                            |"
RANK_3 = "| 3       0                 | 4242          | python3                  | 37709                   |"
OF_DEVICES = "CPU104 CTR001 CTR002 CTR003 CTR004 CTR005"  # which need a device
NO_DEVICES: Mapping[str, Any] = {
    "files": {**{f"/dev/davinci{n}": None for n in range(4)}, "/dev/davinci_manager": None}
}
HEADLESS = "Name: opencv-python-headless\nVersion: 3.4.10.37\n"

ROWS: list[tuple[str, str, Mapping[str, Any], str]] = [
    # --- CPU
    (B, "governor of one policy", {"files": {f"{FREQ}/policy7/scaling_governor": "powersave\n"}}, "CPU001 CPU002"),
    (
        B,
        "governor of another policy",
        {"files": {f"{FREQ}/policy191/scaling_governor": "schedutil\n"}},
        "CPU001 CPU002",
    ),
    (B, "performance not offered", {"files": {f"{FREQ}/policy3/scaling_available_governors": "powersave\n"}}, "CPU003"),
    (B, "ceiling lowered on one policy", {"files": {f"{FREQ}/policy5/scaling_max_freq": "1200000\n"}}, "CPU008"),
    (B, "cpupower gone", {"files": {"/usr/bin/cpupower": None}}, "CPU004"),
    (
        B,
        "cpupower sets ondemand",
        {"files": {"/etc/sysconfig/cpupower": 'CPUPOWER_START_OPTS="frequency-set -g ondemand"\n'}},
        "CPU005",
    ),
    (
        B,
        "BIOS attested otherwise",
        {"files": {"/etc/envtune/attestations.json": ATTESTED_OTHERWISE}},
        "CPU007",
    ),
    (B, "attestation lost", {"files": {"/etc/envtune/attestations.json": None}}, "CPU007"),
    # --- CPU placement, memory settings, limits and storage
    (B, "two CPUs offline", {"files": {f"{CPU}/online": "0-189\n"}}, "CPU101"),
    (B, "a node lost its memory", {"files": {"/sys/devices/system/node/has_memory": "0-6\n"}}, "CPU102"),
    (
        B,
        "throttled",
        {"files": {f"{SLICE}/cpu.stat": "nr_periods 1000\nnr_throttled 900\n"}},
        "CPU103",
    ),
    (
        B,
        "one CPU for the job",
        {"files": {"/proc/self/status": "Name:\tbash\nCpus_allowed_list:\t7\n"}},
        "CPU104",
    ),
    (B, "CPUs isolated", {"files": {f"{CPU}/isolated": "0-7\n"}}, "CPU105"),
    (B, "interrupts on one CPU", {"files": {"/proc/irq/2753/effective_affinity_list": "96\n"}}, "CPU106"),
    (B, "NUMA balancing", {"files": {"/proc/sys/kernel/numa_balancing": "1\n"}}, "SYS101"),
    (B, "swappiness", {"files": {"/proc/sys/vm/swappiness": "60\n"}}, "SYS102"),
    (
        B,
        "huge pages off",
        {"files": {"/sys/kernel/mm/transparent_hugepage/enabled": "always madvise [never]\n"}},
        "SYS103",
    ),
    (B, "overcommit refused", {"files": {"/proc/sys/vm/overcommit_memory": "2\n"}}, "SYS104"),
    (B, "zone reclaim", {"files": {"/proc/sys/vm/zone_reclaim_mode": "1\n"}}, "SYS105"),
    (B, "background writes late", {"files": {"/proc/sys/vm/dirty_background_ratio": "20\n"}}, "SYS106"),
    (
        B,
        "bfq on NVMe",
        {"files": {"/sys/block/nvme0n1/queue/scheduler": "none mq-deadline kyber [bfq]\n"}},
        "SYS107",
    ),
    (
        B,
        "clock source",
        {"files": {"/sys/devices/system/clocksource/clocksource0/current_clocksource": "acpi_pm\n"}},
        "SYS108",
    ),
    (
        B,
        "no time service",
        {"processes": [{"pid": n, "ppid": 1, "user": "root", "name": f"service{n}"} for n in range(1, 30)]},
        "SYS109",
    ),
    (
        B,
        "shared memory is full",
        {
            "disks": [
                {"path": "/", "total": 960 * 10**9, "free": 700 * 10**9, "inodes": 58000000, "free_inodes": 57000000},
                {"path": "/dev/shm", "total": 540 * 10**9, "free": 0},
            ]
        },
        "SYS110",
    ),
    (
        B,
        "no inodes",
        {
            "disks": [
                {"path": "/", "total": 960 * 10**9, "free": 700 * 10**9, "inodes": 58000000, "free_inodes": 9},
                {"path": "/dev/shm", "total": 540 * 10**9, "free": 539 * 10**9},
            ]
        },
        "SYS111",
    ),
    (
        B,
        "read-only",
        {"files": {"/proc/self/mountinfo": "25 1 8:2 / / ro,relatime - ext4 /dev/sda2 ro\n"}},
        "SYS112",
    ),
    (B, "1024 open files", {"files": {"/proc/self/limits": LIMITS.format(files=1024, locked="unlimited")}}, "SYS113"),
    (B, "processes refused", {"files": {f"{SLICE}/pids.events": "max 4\n"}}, "SYS115"),
    (B, "processes killed", {"files": {f"{SLICE}/memory.events": "oom_kill 1\n"}}, "SYS116"),
    (B, "a CPU range", {"environ": {"CPU_AFFINITY_CONF": "1,npu0:190-200"}}, "ENV110"),
    (B, "a library that is missing", {"environ": {"LD_PRELOAD": "/usr/lib64/libjemalloc.so.2"}}, "ENV111 PY111"),
    (B, "threads", {"environ": {"OMP_NUM_THREADS": "192"}}, "ENV112"),
    # --- SYS
    (
        B,
        "half the memory",
        {
            "files": {
                "/proc/meminfo": "MemTotal:       263000000 kB\nMemFree:        1 kB\nSwapTotal:       4194300 kB\n"
            }
        },
        "SYS005",
    ),
    (B, "small NVMe", {"files": {"/sys/block/nvme0n1/size": "1875385008\n"}}, "SYS006"),
    (B, "no NVMe", {"files": {"/sys/block/nvme0n1/size": None, "/sys/block/sda/size": "1875385008\n"}}, "SYS006"),
    (B, "no package manager", {"files": {"/usr/bin/dnf": None, "/usr/bin/dnf-3": None}}, "SYS002"),
    (B, "no right to change anything", {"euid": 1000}, "SYS007 SYS118"),
    (
        B,
        "core dumps",
        {
            "files": {
                "/proc/self/limits": LIMITS.format(files=65536, locked="unlimited").replace(
                    "size        0   ", "size        9999"
                )
            }
        },
        "SYS119",
    ),
    (
        B,
        "few threads",
        {
            "euid": 1000,
            "files": {
                "/proc/self/limits": LIMITS.format(files=65536, locked="unlimited").replace("1030978", "1024   ")
            },
        },
        "SYS007 SYS118",
    ),
    # --- CANN
    (
        B,
        "driver does not take the firmware, nor the firmware the driver",
        {"files": {"/usr/local/Ascend/firmware/version.info": OTHER_FIRMWARE}},
        "CANN006",
    ),
    (B, "firmware file gone", {"files": {"/usr/local/Ascend/firmware/version.info": None}}, "CANN006"),
    (B, "libhccl.so gone", {"files": {f"{TOOLKIT}/8.2.RC1/aarch64-linux/lib64/libhccl.so": None}}, "CANN005"),
    (
        B,
        "libhccl.so of x86",
        {
            "files": {
                f"{TOOLKIT}/8.2.RC1/aarch64-linux/lib64/libhccl.so": {
                    "size": 7300000,
                    "head": "7f454c4602010100000000000000000003003e00",
                }
            }
        },
        "CANN005",
    ),
    (
        B,
        "AICPU kernels gone",
        {"files": {f"{TOOLKIT}/8.2.RC1/opp/Ascend/aicpu/Ascend-aicpu_syskernels.tar.gz": None}},
        "CANN008",
    ),
    (B, "set_env.sh gone", {"files": {f"{TOOLKIT}/set_env.sh": None}}, "CANN002"),
    (
        B,
        "torch of another release",
        {
            "files": {
                f"{SITE_B}/torch-2.5.1.dist-info/METADATA": None,
                f"{SITE_B}/torch-2.5.1.dist-info/RECORD": None,
                f"{SITE_B}/torch-2.4.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: torch\nVersion: 2.4.0\n",
            }
        },
        "CANN009 PY004",
    ),
    (
        B,
        "a left-over te",
        {
            "files": {
                f"{SITE_B}/te/__init__.py": "",
                f"{SITE_B}/te-0.4.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: te\nVersion: 0.4.0\n",
            }
        },
        "CANN003",
    ),
    (
        A,
        "te of another CANN",
        {
            "files": {
                f"{SITE_A}/te-0.4.0.dist-info/RECORD": "te/__init__.py,sha256=QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo,9\n"
            }
        },
        "CANN003",
    ),
    (
        A,
        "topi of another CANN",
        {
            "files": {
                f"{SITE_A}/topi-0.4.0.dist-info/RECORD": "topi/__init__.py,sha256=QUJDREVGR0hJSktMTU5PUFFSU1RVVl,9\n"
            }
        },
        "CANN003",
    ),
    # --- ENV and CANN variables
    (B, "AICPU path elsewhere", {"environ": {"ASCEND_AICPU_PATH": "/opt/none"}}, "CANN008 CANN012"),
    (B, "AICPU path unset", {"environ": {"ASCEND_AICPU_PATH": None}}, "CANN008"),
    (B, "task queue off", {"environ": {"TASK_QUEUE_ENABLE": "0"}}, "ENV001 ENV015"),
    (B, "log on the screen", {"environ": {"ASCEND_SLOG_PRINT_TO_STDOUT": "1"}}, "ENV002 ENV015"),
    (B, "log level info", {"environ": {"ASCEND_GLOBAL_LOG_LEVEL": "1"}}, "ENV003 ENV015"),
    (B, "graphs dumped", {"environ": {"DUMP_GE_GRAPH": "2"}}, "ENV004 ENV015"),
    (B, "graph level set", {"environ": {"DUMP_GRAPH_LEVEL": "3"}}, "ENV005 ENV015"),
    (B, "events on", {"environ": {"ASCEND_GLOBAL_EVENT_ENABLE": "1"}}, "ENV006 ENV015"),
    (B, "operator dump on", {"environ": {"ACL_DUMP_DATA": "1"}}, "ENV013 ENV015"),
    (B, "launch blocking on", {"environ": {"ASCEND_LAUNCH_BLOCKING": "1"}}, "ENV015 ENV101"),
    (B, "whitelist on without a file", {"environ": {"HCCL_WHITELIST_DISABLE": "0"}}, "ENV010 ENV104"),
    (B, "traffic class not a multiple of 4", {"environ": {"HCCL_RDMA_TC": "133"}}, "ENV103"),
    (B, "connect timeout out of range", {"environ": {"HCCL_CONNECT_TIMEOUT": "60"}}, "ENV103"),
    (B, "service level out of range", {"environ": {"HCCL_RDMA_SL": "9"}}, "ENV103"),
    (B, "both intra links", {"environ": {"HCCL_INTRA_PCIE_ENABLE": "1", "HCCL_INTRA_ROCE_ENABLE": "1"}}, "ENV104"),
    (B, "obsolete variable set", {"environ": {"PTCOPY_ENABLE": "1"}}, "ENV102"),
    (B, "dynamic op set", {"environ": {"DYNAMIC_OP": "ADD#MUL"}}, "ENV102"),
    (
        B,
        "empty entry in PYTHONPATH",
        {
            "environ": {
                "PYTHONPATH": f"{TOOLKIT}/latest/python/site-packages:"
                f":{TOOLKIT}/latest/opp/built-in/op_impl/ai_core/tbe"
            }
        },
        "ENV014",
    ),
    (B, "a misspelled name", {"environ": {"TASK_QUEUE_ENBLE": "1"}}, "ENV106"),
    (
        B,
        "a misspelled name for the right one",
        {"environ": {"HCCL_CONNECT_TIMEOUT": None, "HCCL_CONECT_TIMEOUT": "600"}},
        "ENV106",
    ),
    (B, "the variable of another library", {"environ": {"NCCL_BUFFSIZE": "8", "NCCL_SOCKET_IFNAME": "eth9"}}, ""),
    (B, "tuning results nowhere", {"environ": {"TUNE_BANK_PATH": "/data/bank"}}, "CANN013 ENV105"),
    (
        B,
        "tuning results in a directory",
        {"environ": {"TUNE_BANK_PATH": "/data/bank"}, "files": {"/data/bank": {"dir": []}}},
        "CANN013 ENV105",
    ),
    (B, "a cache of operators nowhere", {"environ": {"ACL_OP_COMPILER_CACHE_DIR": "/data/cache"}}, "ENV105"),
    (B, "an acl.json nowhere", {"environ": {"TORCH_ACL_INIT_CONFIG_PATH": "/data/acl.json"}}, "ENV105"),
    (A, "combined off", {"environ": {"COMBINED_ENABLE": "0"}}, "ENV008"),
    # --- a job that is named; elsewhere than on its host: test_named_jobs.py
    (
        B,
        "a launch script is named",
        {
            "target": {"script": "/home/train/train.sh"},
            "files": {"/home/train/train.sh": "export TASK_QUEUE_ENABLE=0\npython t.py\n"},
        },
        "ENV001 ENV015",
    ),
    # --- NET
    (B, "ports not reserved", {"files": {"/proc/sys/net/ipv4/ip_local_reserved_ports": "\n"}}, "NET005"),
    (
        B,
        "half the ports reserved",
        {"files": {"/proc/sys/net/ipv4/ip_local_reserved_ports": "60000-60007\n"}},
        "NET005",
    ),
    (
        B,
        "a listener in HCCL's range",
        {"listeners": [{"address": "0.0.0.0", "port": 60003, "pid": 7, "process": "exporter"}]},
        "NET005",
    ),
    (
        B,
        "a listener on MASTER_PORT",
        {"listeners": [{"address": "0.0.0.0", "port": 29688, "pid": 7, "process": "python3"}]},
        "NET003",
    ),
    (B, "MASTER_ADDR of the guide's sample", {"environ": {"MASTER_ADDR": "10.136.181.115"}}, "NET001"),
    (B, "MASTER_PORT no number", {"environ": {"MASTER_PORT": "29688a"}}, "NET003"),
    (B, "own name on loopback", {"files": {"/etc/hosts": "127.0.0.1 localhost\n127.0.1.1 node17\n"}}, "NET007"),
    (
        B,
        "default drop",
        {
            "commands": {
                "nft -j list ruleset": '{"nftables": [{"metainfo": {"json_schema_version": 1}}, {"table": {"family": '
                '"inet", "name": "f", "handle": 1}}, {"chain": {"family": "inet", "table": "f", "name": "input", '
                '"handle": 1, "type": "filter", "hook": "input", "prio": 0, "policy": "drop"}}]}'
            }
        },
        "NET004",
    ),
    (N, "a device named twice", {"environ": {"ASCEND_RT_VISIBLE_DEVICES": "0,1,1"}}, "NET006"),
    (N, "a device that is not there", {"environ": {"ASCEND_RT_VISIBLE_DEVICES": "0,16"}}, "NET006"),
    (A, "three devices on a 910A", {"environ": {"RANK_SIZE": "3"}}, "NET006"),
    (
        B,
        "event timeout below the execution timeout",
        {"environ": {"HCCL_EXEC_TIMEOUT": "1800", "HCCL_EVENT_TIMEOUT": "1200"}},
        "ENV104",
    ),
    (
        B,
        "queue per stream without task queue",
        {"environ": {"PER_STREAM_QUEUE": "1", "TASK_QUEUE_ENABLE": "0"}},
        "ENV001 ENV015 ENV102 ENV104",
    ),
    (B, "opp path elsewhere", {"environ": {"ASCEND_OPP_PATH": "/opt/other/opp"}}, "CANN002 CANN012"),
    (
        B,
        "kernel modules of another driver",
        {"files": {"/usr/local/Ascend/driver/version.info": "Version=99.0\n"}},
        "CANN006 CANN101 CANN103",
    ),
    (
        B,
        "one NPU raises an alarm",
        {"npu-smi": ("| 0     910B3               | OK ", "| 0     910B3               | Alarm")},
        "CANN007",
    ),
    (B, "a device node gone", {"files": {"/dev/davinci3": None}}, "CANN007"),
    # --- PY and IMG
    (
        B,
        "a torch folder in the working directory",
        {"files": {"/home/train/torch/__init__.py": "from torch._C import *\n"}},
        "PY003",
    ),
    (B, "zlib.h gone", {"files": {"/usr/include/zlib.h": None}}, "IMG006"),
    (
        B,
        "two OpenCV distributions",
        {
            "files": {
                f"{SITE_B}/cv2/__init__.py": "",
                f"{SITE_B}/opencv_python-3.4.10.37.dist-info/METADATA": "Name: opencv-python\nVersion: 3.4.10.37\n",
                f"{SITE_B}/opencv_python_headless-3.4.10.37.dist-info/METADATA": HEADLESS,
            }
        },
        "IMG005 IMG101",
    ),
    # --- hosts: the driver, containers, other Pythons, distributions
    (B, "the driver's library gone", {"files": {HAL: None, HAL.rpartition("/")[0]: {"dir": []}}}, "CANN104"),
    (B, "the driver's library of x86", {"files": {HAL: {"size": 9000, "head": X86}}}, "CANN104"),
    (
        B,
        "the driver's directories in no search path",
        {
            "environ": {"LD_LIBRARY_PATH": f"{TOOLKIT}/latest/lib64"},
            "files": {"/etc/ld.so.conf.d/ascend_driver_so.conf": None},
        },
        "CANN104",
    ),
    (
        B,
        "npu-smi does not answer",
        {"commands": {"npu-smi info": {"error": "timeout"}}},
        "CANN007 CANN103 CANN105 PROC001 PROC002",
    ),
    (
        B,
        "a directory of the driver that is not there",
        {"environ": {"LD_LIBRARY_PATH": f"{TOOLKIT}/latest/lib64:/usr/local/Ascend/driver/lib64/gone"}},
        "ENV014",
    ),
    (
        B,
        "a directory of a CANN that is not there",
        {"environ": {"LD_LIBRARY_PATH": f"{TOOLKIT}/latest/lib64:{TOOLKIT}/7.0.0/lib64"}},
        "ENV014",
    ),
    (
        B,
        "a directory that set_env.sh names and no package brought",
        {"environ": {"LD_LIBRARY_PATH": f"{TOOLKIT}/latest/lib64:{TOOLKIT}/latest/tools/aml/lib64"}},
        "",
    ),
    (
        B,
        "AICPU kernels three directories deeper",
        {
            "files": {
                f"{TOOLKIT}/8.2.RC1/opp/Ascend/aicpu/Ascend-aicpu_syskernels.tar.gz": None,
                f"{TOOLKIT}/8.2.RC1/opp/built-in/op_impl/aicpu/a/b/c/libpt_kernels.so": {"size": 5100000},
            }
        },
        "",
    ),
    (C, "no device, no driver", NO_DEVICES, f"CANN104 PROC001 {OF_DEVICES}"),
    (
        C,
        "no device, and a job with ranks",
        {**NO_DEVICES, "environ": {"RANK": "0"}},
        f"CANN007 CANN104 PROC001 {OF_DEVICES}",
    ),
    (B, "UOS Server", {"files": {"/etc/os-release": UOS + 'PLATFORM_ID="platform:uelc20"\n'}}, ""),
    (B, "UOS with the package manager of the other edition", {"files": {"/etc/os-release": UOS}}, "SYS002"),
    (B, "a distribution that nobody knows", {"files": {"/etc/os-release": "ID=example\nVERSION_ID=1\n"}}, ""),
    (
        A,
        "CentOS 7.6, told by /etc/redhat-release",
        {
            "files": {
                "/etc/os-release": 'ID="centos"\nVERSION_ID="7"\n',
                "/etc/redhat-release": "CentOS Linux release 7.6.1810 (Core)\n",
            }
        },
        "SYS003",
    ),
    (
        B,
        "torch_npu of a release that nobody knows",
        {
            "files": {
                f"{SITE_B}/torch_npu-2.5.1.post1.dist-info/METADATA": None,
                f"{SITE_B}/torch_npu-2.5.1.post1.dist-info/RECORD": None,
                f"{SITE_B}/torch_npu-2.2.9.dist-info/METADATA": "Name: torch-npu\nVersion: 2.2.9\n",
            }
        },
        "CANN009 ENV007 ENV009 ENV102 PY004",
    ),
    # --- PROC
    (
        B,
        "a rank whose launcher init adopted",
        {
            "processes": [
                {"pid": 1, "ppid": 0, "user": "root", "name": "systemd", "argv": ["/sbin/init"]},
                {"pid": 4200, "ppid": 1, "user": "li", "name": "torchrun", "argv": ["python3", "/usr/bin/torchrun"]},
                {"pid": 4242, "ppid": 4200, "user": "li", "name": "python3", "argv": ["python3", "train.py"]},
            ],
            "npu-smi": (IDLE_3, RANK_3),
        },
        "PROC001 PROC002",
    ),
    (
        B,
        "a profiler runs",
        {"processes": [{"pid": 77, "ppid": 1, "user": "root", "name": "msprof", "argv": ["msprof", "--output=/tmp"]}]},
        "PROC003",
    ),
    # --- the guide's compilers, logs, files of the job, inference cards
    (B, "an old gcc", {"files": {"/usr/lib/gcc/aarch64-linux-gnu/4.8.5/cc1": {"size": 9000}}}, "BLD001"),
    (
        B,
        "a gcc built over the system's",
        {"files": {"/usr/local/libexec/gcc/aarch64-unknown-linux-gnu/9.3.0/cc1": {"size": 9000}}},
        "BLD001 BLD002",
    ),
    (B, "a gcc source tree without its libraries", {"files": {"/root/gcc-7.3.0/configure": {"size": 9}}}, "BLD003"),
    (
        B,
        "a card for inference",
        {
            "files": {
                "/sys/bus/pci/devices/0000:d1:00.0/vendor": "0x19e5\n",
                "/sys/bus/pci/devices/0000:d1:00.0/device": "0xd500\n",
                "/sys/bus/pci/devices/0000:d1:00.0/class": "0x120000\n",
            }
        },
        "CANN007 CANN015",
    ),
    (B, "logs of another user", {"files": {"/root/ascend/log": {"dir": [], "mode": "0700", "uid": 1}}}, "LOG001"),
    (
        B,
        "logs larger than the disk",
        {"disks": [{"path": "/", "total": 10**12, "free": 10**9}]},
        "LOG003 SYS009 SYS011 SYS111",
    ),
    (B, "a dump configuration that is no JSON", {"files": {"/home/train/acl.json": "{\n"}}, "CFG001"),
    (B, "a graph that was dumped", {"files": {"/home/train/ge_proto_1.txt": "node\n"}}, "CFG002"),
    (
        B,
        "the npu-smi that finds driver and firmware incompatible",
        {"commands": {"npu-smi info -t board -i 0": "Compatibility   : NOK\n"}},
        "CANN006",
    ),
    (
        B,
        "a launch script with gloo and a data set that is not there",
        {
            "target": {"script": "/home/train/train.sh"},
            "files": {"/home/train/train.sh": "python3 t.py --dist-backend gloo --data_path /data/x\n"},
        },
        "CFG003 NET002",
    ),
    (
        B,
        "a data set on a share",
        {
            "target": {"script": "/home/train/train.sh"},
            "files": {
                "/home/train/train.sh": "python3 t.py --data_path /data/x\n",
                "/data/x": {"dir": ["train"]},
                "/proc/self/mountinfo": "25 1 8:2 / / rw - ext4 /dev/sda2 rw\n40 25 0:5 / /data rw - nfs nas:/d rw\n",
            },
        },
        "CFG003 SYS117",
    ),
    (
        B,
        "a program with a debug level",
        {
            "target": {"script": "/home/train/train.sh"},
            "files": {
                "/home/train/train.sh": "python3 t.py\n",
                "/home/train/t.py": "torch.npu.set_option({'ACL_OP_DEBUG_LEVEL': 1})\n",
            },
        },
        "ENV017",
    ),
]
