"""onion on a processor without AVX-512: what scripts/portable.py is made of.

emulator    qemu-user: where it is, and a process under it
processor   what is said of a processor that has AVX2 and no AVX-512
material    the tiny encoders and files that an emulated process works with, made natively
journey     the emulated process: every task trained, tested, saved, resumed, predicted with, embedded
watch       a process that says what it does next, ended if it is silent for too long
"""
