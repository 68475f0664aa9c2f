// Package enginetest is the behaviour suite that every engine passes,
// whatever moves its bytes.
//
// Run has two halves. The first needs nothing from the engine but its
// interface. The second puts a fault.Script under it as Config.IO, to fail,
// shorten or hold chosen transfers; an engine that does not make its transfers
// through Config.IO must submit them to the script in some other way.
//
// Tests wait for events (a call parked at a barrier, a callback, a channel)
// and never for time. Where a test must see that something does not happen,
// settle gives the other threads every chance to do it wrong; a right engine
// passes whatever the scheduling.
package enginetest
