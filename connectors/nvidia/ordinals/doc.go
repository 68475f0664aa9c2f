// Package ordinals says which GPU a CUDA ordinal of a process means, from what
// NVML lists and the environment of the process. CUDA itself is asked first,
// always; this is for when it does not answer (no libcuda, a forked child, a
// driver that does not start), and for tools.
//
// The rules are those of the CUDA programming guide ("CUDA Environment
// Variables") and of the MIG user guide. Where they leave the order open, or say
// nothing, there is no answer: a wrong device is worse than none.
//
// The functions are pure. Errors carry a syscall.Errno.
package ordinals
