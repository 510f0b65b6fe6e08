"""What the project is tried and measured by; each package and script is run as ``python -m scripts.NAME``.

crash_test         runs killed anywhere and resumed, compared bit by bit (make crash-test)
interrupt          runs that get Ctrl-C while they save (make interrupt)
online             a steered run, and exactly-once delivery under kills (make online, make exactly-once)
service_attack     hostile clients of a run's HTTP service (make attack-service, make hostile)
soak               a day of batches: what grows (make soak)
spoil              broken data files through all commands (make spoil)
parity             onion beside the reference implementations (make parity)
reference_outputs  what runs in the environments of the references
portable           processors without AVX-512 (make portable); arm.py: ARM (make arm)
gpu, gpu_operators with a GPU, and with a GPU build alone (make gpu, make gpu-dry)
make_golden        the golden files of the tests
"""
