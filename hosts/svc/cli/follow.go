package cli

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/hosts/internal/terminal"
)

// waiting is --wait of a command that begins an operation.
type waiting struct{ wait bool }

func (w *waiting) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&w.wait, "wait", false, "wait until the operation has ended, and show its progress")
}

// end shows an operation that has begun or, with --wait, how it has ended. One that has failed or was canceled fails the command.
func (w *waiting) end(ctx context.Context, a *app, c *apiclient.Client, begun wire.OperationWithMessage) error {
	if !w.wait {
		if a.wantsJSON() {
			return a.showJSON(begun)
		}
		a.note("%s\nfollow it with: svc operations wait %s", begun.Message, begun.Operation.ID)
		return a.showOperation(begun.Operation)
	}
	ended, err := a.follow(ctx, c, begun.Operation)
	if err != nil {
		return err
	}
	return a.showEnded(ended)
}

// showEnded shows an operation; one without success is an error after that.
func (a *app) showEnded(o wire.Operation) error {
	if err := a.showOperation(o); err != nil {
		return err
	}
	if o.Status != operation.Succeeded {
		return failedOperation{o}
	}
	return nil
}

// failedOperation is an operation that has ended without success.
type failedOperation struct{ o wire.Operation }

func (f failedOperation) Error() string {
	text := fmt.Sprintf("the %s %s was not done: it is %s", f.o.Type, f.o.ID, f.o.Status)
	if f.o.Error != nil {
		text += fmt.Sprintf(": %s: %s", f.o.Error.Code, f.o.Error.Message)
	}
	return text
}

// The pauses between two looks at an operation: short at first, for those that take a moment.
const (
	firstLook = 200 * time.Millisecond
	lastLook  = 2 * time.Second
)

// follow looks at an operation until it has ended, and shows its progress. Ending svc does not end the operation.
func (a *app) follow(ctx context.Context, c *apiclient.Client, o wire.Operation) (wire.Operation, error) {
	bar := a.progress(o)
	defer bar.end()
	ended := func(o wire.Operation) bool { return o.Status.Final() }
	o, err := untilDone(ctx, o, ended, func(ctx context.Context) (wire.Operation, error) {
		now, err := c.Operations.Get(ctx, o.ID)
		if err == nil {
			bar.show(now)
		}
		return now, err
	})
	return o, goesOn(err, o)
}

// untilDone makes a call again and again, with pauses, until its answer says that the work is done. now is the latest answer.
func untilDone[T any](
	ctx context.Context, now T, done func(T) bool, again func(context.Context) (T, error),
) (T, error) {
	for pause := firstLook; !done(now); pause = min(pause*3/2, lastLook) {
		select {
		case <-ctx.Done():
			return now, over(ctx)
		case <-time.After(pause):
		}
		then, err := again(ctx)
		if err != nil && ctx.Err() != nil { // However the wait and the calls alternate, it ends the same way.
			return now, over(ctx)
		}
		if err != nil {
			return now, err
		}
		now = then
	}
	return now, nil
}

// over is why a wait has ended although the API answers.
func over(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return errTimeout
	}
	return ctx.Err()
}

var errTimeout = errors.New("the time of --timeout is over")

func goesOn(err error, o wire.Operation) error {
	return next(err, "the %s goes on; wait for it with: svc operations wait %s", o.Type, o.ID)
}

// progress shows how far an operation is: a bar on a terminal, and elsewhere a line for each change of its stage.
type progress struct {
	a     *app
	stage atomic.Pointer[string] // the bar reads it in a goroutine of its own
	all   *mpb.Progress
	bar   *mpb.Bar
}

func (a *app) progress(o wire.Operation) *progress {
	p := &progress{a: a}
	p.stage.Store(new(string))
	if a.err.terminal {
		p.all = mpb.New(mpb.WithOutput(a.err.Writer), mpb.WithWidth(min(a.err.width, 100)))
		p.bar = p.all.New(100, mpb.BarStyle().Lbound("").Rbound("").Filler("━").Tip("━").Padding(" "),
			mpb.PrependDecorators(decor.Any(func(decor.Statistics) string { return *p.stage.Load() + " " })),
			mpb.AppendDecorators(decor.Percentage(decor.WCSyncSpace), decor.Elapsed(decor.ET_STYLE_GO, decor.WCSyncSpace)),
			mpb.BarRemoveOnComplete())
	}
	p.show(o)
	return p
}

func (p *progress) show(o wire.Operation) {
	stage := fmt.Sprintf("%s: %s", o.Type, terminal.Visible(first(o.Stage, string(o.Status))))
	changed := *p.stage.Swap(&stage) != stage
	if p.bar != nil {
		p.bar.SetCurrent(int64(min(o.Progress, 99))) // A full bar is removed, and the stage can still change.
	} else if changed {
		p.a.note("%s (%d %%)", stage, o.Progress)
	}
}

// end takes the bar away.
func (p *progress) end() {
	if p.bar == nil {
		return
	}
	p.bar.Abort(true)
	p.all.Wait()
}
