// Package gate counts the users of a thing that somebody will take away.
//
// Users enter and leave; the owner closes the gate, which refuses new users,
// and drains it, which waits until those inside have left. A closed gate can
// be reopened. The whole state is one 32-bit word, so a Gate may lie in memory
// that C shares: bit 31 says closed, bits 0..30 count the users.
//
// A user that finds the gate closed is counted for an instant before it turns
// back, so the count seen through a closed gate may exceed the number inside;
// it never falls below it.
//
// Nothing here blocks but Drain, which parks the thread on the word.
package gate
