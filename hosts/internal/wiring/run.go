package wiring

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"go.uber.org/dig"
	"go.uber.org/fx"
	"go.uber.org/zap"

	"github.com/pgherd/pgherd/hosts/internal/settings"
)

// StopLimit is how long a host may take to stop its work.
const StopLimit = 40 * time.Second

const startLimit = 2 * time.Minute

// Run builds a host from its modules, starts it, and stops it when ctx ends or one of its parts fails.
func Run(ctx context.Context, modules ...fx.Option) error {
	// SIGHUP ends a process that does not ask for it: from here on, this one does, also while OnHangup does not listen.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	told := &reporter{}
	app := fx.New(append(modules, told.option(), fx.NopLogger, fx.StartTimeout(startLimit), fx.StopTimeout(StopLimit))...)
	if err := app.Err(); err != nil {
		return dig.RootCause(err) // without fx's account of which constructor needed which
	}
	// The end of ctx does not cut the start off: what has begun by then would not be stopped.
	starting, cancel := context.WithTimeout(context.WithoutCancel(ctx), app.StartTimeout())
	defer cancel()
	if err := app.Start(starting); err != nil {
		return err
	}
	var failed error
	select {
	case <-ctx.Done():
	case s := <-app.Wait():
		if s.ExitCode != 0 {
			failed = told.failure()
		}
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), app.StopTimeout())
	defer cancel()
	return errors.Join(failed, app.Stop(stopping))
}

// Part is something that runs from the start of a host to its end.
type Part struct {
	Name string
	// Run works until ctx ends. Returning before that stops the host.
	Run func(ctx context.Context) error
}

// Attach ties a part to the life of the host. Stopping waits for Run to return.
func Attach(lc fx.Lifecycle, stop fx.Shutdowner, log *zap.Logger, p Part) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	lc.Append(fx.Hook{
		OnStart: func(context.Context) error {
			go func() {
				defer close(done)
				err := p.Run(ctx)
				if ctx.Err() != nil {
					return
				}
				log.Error("a part of the host ended by itself", zap.String("part", p.Name), zap.Error(err))
				fail(stop, p.Name, err)
			}()
			return nil
		},
		OnStop: func(stopping context.Context) error {
			cancel()
			select {
			case <-done:
				return nil
			case <-stopping.Done():
				return errors.New(p.Name + " did not stop in time")
			}
		},
	})
}

// Server is a listener's loop that is stopped by Shutdown.
type Server interface {
	Serve(ln net.Listener) error
	Shutdown(ctx context.Context) error
}

// Address is where a part of a host listens, and which flag says so.
type Address struct{ Part, Flag, Address string }

// Open begins to listen. The error names the flag.
func (a Address) Open(ctx context.Context) (net.Listener, error) {
	var dial net.ListenConfig
	ln, err := dial.Listen(ctx, "tcp", a.Address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s: another program listens on %s; stop it, or give another address", settings.Flag(a.Flag), a.Address)
	case err != nil:
		return nil, fmt.Errorf("%s: the host cannot listen on %s: %w", settings.Flag(a.Flag), a.Address, err)
	}
	return ln, nil
}

// Listen opens the address at the start of the host, so that a port in use fails the start, and serves until its end.
func Listen(lc fx.Lifecycle, stop fx.Shutdowner, log *zap.Logger, a Address, s Server) {
	name := a.Part
	lc.Append(fx.Hook{
		OnStart: func(ctx context.Context) error {
			ln, err := a.Open(ctx)
			if err != nil {
				return err
			}
			log.Info("listening", zap.String("part", name), zap.String("address", ln.Addr().String()))
			go func() {
				if err := s.Serve(ln); err != nil {
					log.Error("listener failed", zap.String("part", name), zap.Error(err))
					fail(stop, name, err)
				}
			}()
			return nil
		},
		OnStop: s.Shutdown,
	})
}
