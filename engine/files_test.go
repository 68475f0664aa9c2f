package engine

import "testing"

// What is known of an fd ends with the batch, also when the rounds begin again,
// and is never taken for another fd or the other question.
func TestAnswersAboutFilesLastOneBatch(t *testing.T) {
	var f batchFiles
	check := func(what string, fd int32, q fileQuestion, yes, known bool) {
		t.Helper()
		if y, k := f.recall(fd, q); y != yes || k != known {
			t.Errorf("%s: fd %d, question %d: %v, known %v; want %v, known %v", what, fd, q, y, k, yes, known)
		}
	}
	for _, fd := range []int32{-1, 0, 3, 67, 1<<31 - 1} {
		check("nothing noted", fd, askInARow, false, false)
		f.note(fd, askInARow, true)
		check("noted", fd, askInARow, true, true)
		check("noted", fd, askDirect, false, false)
		f.note(fd, askDirect, false)
		check("both noted", fd, askInARow, true, true)
		check("both noted", fd, askDirect, false, true)
		check("another fd", fd^64, askInARow, false, false)
		f.note(fd^64, askDirect, true) // takes the place
		check("displaced", fd, askInARow, false, false)
		check("displaced", fd, askDirect, false, false)
		check("displacing", fd^64, askDirect, true, true)
		check("displacing", fd^64, askInARow, false, false)
		f.forget()
		check("next batch", fd^64, askDirect, false, false)
	}
	f = batchFiles{}
	f.note(5, askInARow, true)
	f.forget()
	first := f.round
	f.note(5, askInARow, true)
	f.round = fileRounds - 1
	f.forget()
	for range 3 {
		check("rounds began again", 5, askInARow, false, false)
		f.forget()
	}
	if f.round < first || f.round > 8 {
		t.Errorf("round %d after the rounds began again, first was %d", f.round, first)
	}
}
