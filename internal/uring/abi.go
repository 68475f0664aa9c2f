package uring

import (
	sys "github.com/iceber/iouring-go/syscall"
)

// Params is struct io_uring_params.
type Params = sys.IOURingParams

// Flags of io_uring_setup(2) by the kernel that brought them. The wrapper's
// list ends at 5.19 (linux/io_uring.h, 6.6).
const (
	SetupSubmitAll    = sys.IORING_SETUP_SUBMIT_ALL   // 5.18: a bad request does not end a submission
	SetupCoopTaskrun  = sys.IORING_SETUP_COOP_TASKRUN // 5.19: no interrupt of the owner for a completion
	SetupSingleIssuer = 1 << 12                       // 6.0: only the creating thread submits
	SetupNoSQArray    = 1 << 16                       // 6.6: no indirection of the submission queue
)

// Features that a kernel reports in Params.Features.
const (
	FeatSingleMmap = sys.IORING_FEAT_SINGLE_MMAP // 5.4: one mapping holds both queues
	FeatRegRegRing = 1 << 13                     // 6.3: a registered ring needs its fd no more
)

// Flags of io_uring_enter(2).
const (
	EnterGetEvents      = sys.IORING_ENTER_FLAGS_GETEVENTS
	EnterRegisteredRing = 1 << 4 // 5.18
)

// Operations of io_uring_register(2).
const (
	RegisterRingFDs   = 20 // 5.18
	UnregisterRingFDs = 21
	// UseRegisteredRing, or'ed to the operation, says that the fd is an index
	// of RegisterRingFDs.
	UseRegisteredRing = 1 << 31
)

// Offsets of the mappings of a ring fd.
const (
	OffSQRing = int64(sys.IORING_OFF_SQ_RING)
	OffCQRing = int64(sys.IORING_OFF_CQ_RING)
	OffSQEs   = int64(sys.IORING_OFF_SQES)
)

// Opcode is what a request does.
type Opcode uint8

const (
	Nop         = Opcode(sys.IORING_OP_NOP)
	Readv       = Opcode(sys.IORING_OP_READV)
	Writev      = Opcode(sys.IORING_OP_WRITEV)
	AsyncCancel = Opcode(sys.IORING_OP_ASYNC_CANCEL) // 5.5
	Read        = Opcode(sys.IORING_OP_READ)         // 5.6
	Write       = Opcode(sys.IORING_OP_WRITE)        // 5.6
)

// SQE and CQE are struct io_uring_sqe and struct io_uring_cqe, of 64 and 16
// bytes.
type (
	SQE = sys.SubmissionQueueEntry64
	CQE = sys.CompletionQueueEvent16
)

// RingUpdate is struct io_uring_rsrc_update, the argument of RegisterRingFDs
// and UnregisterRingFDs.
type RingUpdate struct {
	Offset uint32 // the index; ^0 asks for any and receives it
	_      uint32
	Data   uint64 // the ring fd
}

// iovec is struct iovec. The kernel may read it until the request completes
// (before 5.5, IORING_FEAT_SUBMIT_STABLE).
type iovec struct{ base, len uintptr }
