package engine

import "fmt"

// Choose builds the engine that want names, "sync" or "io_uring"; anything
// else is no wish. Without a wish to the contrary it is io_uring if that works
// here, shown by a read on a real ring, else sync. Why it is not the one that
// was wanted is told to cfg.Notice, once, and kept for Reason.
func Choose(cfg Config, want string) Engine {
	if want == "sync" {
		return because(NewSync(cfg), "sync was asked for")
	}
	e, err := NewUring(cfg)
	if err == nil {
		return because(e, "a ring was made and read with")
	}
	reason := fmt.Sprintf("io_uring is not used: %v", err)
	if cfg.Notice != nil {
		cfg.Notice(reason)
	}
	return because(NewSync(cfg), reason)
}

// Reason is a sentence that says why Choose chose e; "" for another engine.
func Reason(e Engine) string {
	if m, ok := e.(*machine); ok {
		return m.reason
	}
	return ""
}

func because(e Engine, reason string) Engine {
	e.(*machine).reason = reason
	return e
}
