package engine

import "sync/atomic"

// batchFiles is what is known of the files of one batch. All who work on the
// batch share it, so that the kernel is asked about an fd once; two who ask at
// the same time both note the same answer. It is forgotten with the batch: the
// number may be another file in the next one.
type batchFiles struct {
	round uint64            // below fileRounds; changes only while nobody else knows the batch
	known [64]atomic.Uint64 // by fd, modulo; a collision costs one more question
}

// A word of known is the fd in the upper 32 bits, the round, and two bits for
// each question: answered, and yes.
type fileQuestion uint

const (
	askInARow fileQuestion = 0 // fdQuestion.inARow
	askDirect fileQuestion = 2 // isDirect

	fileAnswers = 4 // bits
	fileRounds  = 1 << (32 - fileAnswers)
)

// forget begins a new batch.
func (f *batchFiles) forget() {
	if f.round++; f.round == fileRounds {
		*f = batchFiles{round: 1}
	}
}

// recall is the answer about fd, if it is known.
func (f *batchFiles) recall(fd int32, q fileQuestion) (yes, known bool) {
	w := f.known[uint32(fd)%64].Load()
	if w>>fileAnswers != f.key(fd) {
		return false, false
	}
	return w>>q&2 != 0, w>>q&1 != 0
}

// note keeps the answer about fd. An answer to the other question that comes at
// the same moment may be lost, and is asked for again.
func (f *batchFiles) note(fd int32, q fileQuestion, yes bool) {
	k := &f.known[uint32(fd)%64]
	w := k.Load()
	if w>>fileAnswers != f.key(fd) {
		w = f.key(fd) << fileAnswers
	}
	w |= 1 << q
	if yes {
		w |= 2 << q
	}
	k.Store(w)
}

func (f *batchFiles) key(fd int32) uint64 { return uint64(uint32(fd))<<(32-fileAnswers) | f.round }

// inARow reports whether fd is a file that holds bytes in a row (uringfd.go).
func (b *Batch) inARow(fd int32) bool {
	yes, known := b.files.recall(fd, askInARow)
	if !known {
		var q fdQuestion
		yes = q.inARow(fd)
		b.files.note(fd, askInARow, yes)
	}
	return yes
}

// direct reports whether fd has the flags of flags, O_DIRECT, and not O_APPEND.
// All who ask about a batch ask for the same flags.
func (b *Batch) direct(fd int32, flags int) bool {
	yes, known := b.files.recall(fd, askDirect)
	if !known {
		yes = isDirect(fd, flags)
		b.files.note(fd, askDirect, yes)
	}
	return yes
}
