package cli

import (
	"context"
	"fmt"
	"sync/atomic"

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
		a.note("%s\nfollow it with: %s", begun.Message, a.onward("svc", "operations", "wait", string(begun.Operation.ID)))
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
	how := "has failed"
	if f.o.Status == operation.Canceled {
		how = "was canceled"
	}
	text := fmt.Sprintf("the %s %s %s", f.o.Type, f.o.ID, how)
	if f.o.Error != nil {
		text += fmt.Sprintf(": %s: %s", f.o.Error.Code, f.o.Error.Message)
	}
	return text
}

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
	return o, a.goesOn(err, o)
}

func (a *app) goesOn(err error, o wire.Operation) error {
	return next(err, "the %s goes on; wait for it with: %s", o.Type, a.onward("svc", "operations", "wait", string(o.ID)))
}

// progress shows how far an operation is: a bar on a terminal, and elsewhere a line for each change of its stage.
type progress struct {
	a     *app
	stage atomic.Pointer[string] // the bar reads them in a goroutine of its own
	bytes atomic.Pointer[string]
	all   *mpb.Progress
	bar   *mpb.Bar
}

func (a *app) progress(o wire.Operation) *progress {
	p := &progress{a: a}
	p.stage.Store(new(string))
	p.bytes.Store(new(string))
	if a.err.terminal {
		p.all = mpb.New(mpb.WithOutput(a.err.Writer), mpb.WithWidth(min(a.err.width, 100)))
		p.bar = p.all.New(100, mpb.BarStyle().Lbound("").Rbound("").Filler("━").Tip("━").Padding(" "),
			mpb.PrependDecorators(decor.Any(func(decor.Statistics) string { return *p.stage.Load() + " " })),
			mpb.AppendDecorators(decor.Percentage(decor.WCSyncSpace), decor.Any(func(decor.Statistics) string { return *p.bytes.Load() }),
				decor.Elapsed(decor.ET_STYLE_GO, decor.WCSyncSpace)),
			mpb.BarRemoveOnComplete())
	}
	p.show(o)
	return p
}

func (p *progress) show(o wire.Operation) {
	stage := fmt.Sprintf("%s: %s", o.Type, terminal.Visible(first(o.Stage, string(o.Status))))
	changed := *p.stage.Swap(&stage) != stage
	bytes := moved(o)
	p.bytes.Store(&bytes)
	if p.bar != nil {
		p.bar.SetCurrent(int64(min(o.Progress, 99))) // A full bar is removed, and the stage can still change.
	} else if changed {
		p.a.note("%s (%d %%)", stage, o.Progress)
	}
}

// moved is how many bytes of the part that is under way are done; empty where the service does not know.
func moved(o wire.Operation) string {
	if o.ProgressBytes == nil {
		return ""
	}
	return fmt.Sprintf(" (%s of %s)", terminal.Bytes(o.ProgressBytes.Done), terminal.Bytes(o.ProgressBytes.Total))
}

// end takes the bar away.
func (p *progress) end() {
	if p.bar == nil {
		return
	}
	p.bar.Abort(true)
	p.all.Wait()
}
