package core

// Reason says why a call or a request failed, finer than its errno.
type Reason uint8

// Reasons, by Class.
const (
	_ Reason = iota

	// ClassArgument
	ReasonNegativeLength
	ReasonNegativeOffset
	ReasonFileRange
	ReasonCPUAddress
	ReasonNullAddress
	ReasonNullTarget
	ReasonNullRequests
	ReasonLength
	ReasonAlignment
	ReasonRangeOverflow
	ReasonOverlap

	// ClassDevice
	ReasonBadDevice
	ReasonNotOpen
	ReasonClosing
	ReasonUnregistered
	ReasonOutside
	ReasonBufOffset
	ReasonRegionClosing
	ReasonUnknownRange
	ReasonWrongLength

	// ClassMemory
	ReasonNoMemory

	// ClassHandle
	ReasonBadHandle

	// ClassDevice; from here on the errno comes from elsewhere
	ReasonOpenNode
	ReasonCloseNode
	ReasonUnmap
	ReasonMunmap
	ReasonFindDevice

	// ClassMap
	ReasonMap

	// ClassQueue
	ReasonSubmit

	// ClassKernel
	ReasonKernel

	reasonEnd
)

// Class groups reasons by what the C calls return for them (docs/abi.md §2).
type Class uint8

// Classes.
const (
	ClassArgument Class = iota + 1 // an argument no state could make right: -EINVAL where the call has it, else -1
	ClassDevice                    // the state of a device or registration, or its driver, forbids it: -1 (regmem: -EINVAL; open while closing: -EBUSY)
	ClassMap                       // regmem: mmap, MAP or the embedded range check failed: -EFAULT whatever the errno
	ClassMemory                    // memory is out: -ENOMEM
	ClassQueue                     // submit: EBUSY or ENOTSUP, NULL
	ClassHandle                    // not a live handle: -EINVAL
	ClassKernel                    // the kernel's answer to read or write: -errno
)

// Class is the group of r.
func (r Reason) Class() Class {
	switch {
	case r <= ReasonOverlap:
		return ClassArgument
	case r == ReasonNoMemory:
		return ClassMemory
	case r == ReasonBadHandle:
		return ClassHandle
	case r == ReasonMap:
		return ClassMap
	case r == ReasonSubmit:
		return ClassQueue
	case r == ReasonKernel:
		return ClassKernel
	default:
		return ClassDevice
	}
}

var reasonTexts = [reasonEnd]string{
	ReasonNegativeLength: "the length is negative",
	ReasonNegativeOffset: "the file offset is negative",
	ReasonFileRange:      "file offset plus length does not fit in 63 bits",
	ReasonCPUAddress:     "the CPU buffer's offset is negative or its end does not fit the address space",
	ReasonNullAddress:    "the address is NULL",
	ReasonNullTarget:     "the place for the target address is NULL",
	ReasonNullRequests:   "the array of requests is NULL",
	ReasonLength:         "the length is zero or not a multiple of the page size",
	ReasonAlignment:      "the address is not a multiple of the page size",
	ReasonRangeOverflow:  "address plus length does not fit in 64 bits",
	ReasonOverlap:        "the range overlaps another registration",
	ReasonBadDevice:      "the device id is not 0..7",
	ReasonNotOpen:        "the device is not open",
	ReasonClosing:        "the last close of the device is in progress",
	ReasonUnregistered:   "the buffer is in no registration",
	ReasonOutside:        "the extent reaches outside its registration",
	ReasonBufOffset:      "the buffer offset is negative",
	ReasonRegionClosing:  "the registration is being removed",
	ReasonUnknownRange:   "no registration starts at this address",
	ReasonWrongLength:    "the registration at this address has another length",
	ReasonNoMemory:       "out of memory",
	ReasonBadHandle:      "not a handle, or one already waited for or destroyed",
	ReasonOpenNode:       "opening the device node failed",
	ReasonCloseNode:      "closing the device node failed",
	ReasonUnmap:          "the driver refused UNMAP",
	ReasonMunmap:         "munmap failed",
	ReasonFindDevice:     "no phxfs device for this ordinal",
	ReasonMap:            "the memory could not be mapped",
	ReasonSubmit:         "the batch could not be queued",
	ReasonKernel:         "the kernel refused the transfer",
}

// String is one English clause without a full stop.
func (r Reason) String() string {
	if r < reasonEnd && reasonTexts[r] != "" {
		return reasonTexts[r]
	}
	return "unknown reason"
}
