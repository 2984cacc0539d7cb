package wiring

import (
	"errors"
	"fmt"
	"sync"

	"go.uber.org/fx"
)

// reporter is a host's fx.Shutdowner that remembers which part has failed, so that whoever started the host is told.
type reporter struct {
	fx.Shutdowner

	mu    sync.Mutex
	first error
}

// option has the parts of a host stop it by the reporter.
func (r *reporter) option() fx.Option {
	return fx.Decorate(func(s fx.Shutdowner) fx.Shutdowner {
		r.Shutdowner = s
		return r
	})
}

// failure is that of the part that failed first; what follows from it is only in the log.
func (r *reporter) failure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.first
}

// fail stops the host for a part that has failed.
func fail(stop fx.Shutdowner, part string, err error) {
	if err == nil {
		err = errors.New("it ended by itself")
	}
	if r, ok := stop.(*reporter); ok {
		r.mu.Lock()
		if r.first == nil {
			r.first = fmt.Errorf("%s: %w", part, err)
		}
		r.mu.Unlock()
	}
	_ = stop.Shutdown(fx.ExitCode(1)) // an error means that it is stopping already
}
