package app

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

// Waiting is --wait of a command that begins an operation.
type Waiting struct{ Wait bool }

// Add adds the flag to a command.
func (w *Waiting) Add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&w.Wait, "wait", false, "wait until the operation has ended, and show its progress")
}

// End shows an operation that has begun or, with --wait, how it has ended. One that has failed or was canceled fails the command.
func (w *Waiting) End(ctx context.Context, a *App, c *apiclient.Client, begun wire.OperationWithMessage) error {
	if !w.Wait {
		if a.WantsJSON() {
			return a.ShowJSON(begun)
		}
		a.Note("%s\nfollow it with: %s", begun.Message, a.Onward("svc", "operations", "wait", string(begun.Operation.ID)))
		return a.ShowOperation(begun.Operation)
	}
	ended, err := a.Follow(ctx, c, begun.Operation)
	if err != nil {
		return err
	}
	return a.ShowEnded(ended)
}

// ShowEnded shows an operation; one without success is an error after that.
func (a *App) ShowEnded(o wire.Operation) error {
	if err := a.ShowOperation(o); err != nil {
		return err
	}
	if o.Status != operation.Succeeded {
		return FailedOperation{o}
	}
	return nil
}

// FailedOperation is an operation that has ended without success.
type FailedOperation struct{ Operation wire.Operation }

func (f FailedOperation) Error() string {
	how := "has failed"
	if f.Operation.Status == operation.Canceled {
		how = "was canceled"
	}
	text := fmt.Sprintf("the %s %s %s", f.Operation.Type, f.Operation.ID, how)
	if f.Operation.Error != nil {
		text += fmt.Sprintf(": %s: %s", f.Operation.Error.Code, f.Operation.Error.Message)
	}
	return text
}

// Follow looks at an operation until it has ended, and shows its progress. Ending svc does not end the operation.
func (a *App) Follow(ctx context.Context, c *apiclient.Client, o wire.Operation) (wire.Operation, error) {
	o, err := a.Drive(ctx, o, func(ctx context.Context) (wire.Operation, error) { return c.Operations.Get(ctx, o.ID) })
	return o, a.goesOn(err, o)
}

// Drive makes a call, which answers with an operation, until that has ended, and shows its progress.
func (a *App) Drive(
	ctx context.Context, o wire.Operation, call func(context.Context) (wire.Operation, error),
) (wire.Operation, error) {
	bar := a.progress(o)
	defer bar.end()
	ended := func(o wire.Operation) bool { return o.Status.Final() }
	return UntilDone(ctx, o, ended, func(ctx context.Context) (wire.Operation, error) {
		now, err := call(ctx)
		if err == nil {
			bar.show(now)
		}
		return now, err
	})
}

func (a *App) goesOn(err error, o wire.Operation) error {
	return Next(err, "the %s goes on; wait for it with: %s", o.Type, a.Onward("svc", "operations", "wait", string(o.ID)))
}

// progress shows how far an operation is: a bar on a terminal, and elsewhere a line for each change of its stage.
type progress struct {
	a     *App
	stage atomic.Pointer[string] // the bar reads them in a goroutine of its own
	bytes atomic.Pointer[string]
	all   *mpb.Progress
	bar   *mpb.Bar
}

func (a *App) progress(o wire.Operation) *progress {
	p := &progress{a: a}
	p.stage.Store(new(string))
	p.bytes.Store(new(string))
	if a.Err.Terminal {
		p.all = mpb.New(mpb.WithOutput(a.Err.Writer), mpb.WithWidth(min(a.Err.Width, 100)))
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
	stage := fmt.Sprintf("%s: %s", o.Type, terminal.Visible(First(o.Stage, string(o.Status))))
	changed := *p.stage.Swap(&stage) != stage
	bytes := moved(o)
	p.bytes.Store(&bytes)
	if p.bar != nil {
		p.bar.SetCurrent(int64(min(o.Progress, 99))) // A full bar is removed, and the stage can still change.
	} else if changed {
		p.a.Note("%s (%d %%)", stage, o.Progress)
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
