package previews

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/pgherd/pgherd/adapters/apiclient"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/operation"
	"github.com/pgherd/pgherd/core/recovery"
	"github.com/pgherd/pgherd/hosts/svc/cli/app"
)

// copied are the flags of a preview that has the data of a database.
type copied struct {
	source, at, namespace string
	wait                  app.Waiting
}

func (f *copied) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.source, "source", "", "the database whose data it has")
	cmd.Flags().StringVar(&f.at, "at", "", "what the database held then, as '2026-03-01 12:30:00+01'")
	cmd.Flags().StringVar(&f.namespace, "namespace", "", "the ID of the CI namespace that the ref is of, with --source")
	f.wait.Add(cmd)
}

func (f *copied) given() bool { return f.source+f.at+f.namespace != "" }

// create makes the preview, and waits for it with --wait. Its password is printed before it is waited for.
func (f *copied) create(a *app.App, cmd *cobra.Command, b wire.CreatePreview) error {
	if f.source == "" || f.at == "" || f.namespace == "" {
		return app.Usage("a preview with the data of a database takes all of --source, --at and --namespace")
	}
	at, err := app.Moment("--at", f.at)
	if err != nil {
		return err
	}
	namespace, err := app.WantID[id.NamespaceID](f.namespace, "--namespace")
	if err != nil {
		return err
	}
	b.PointInTime, b.NamespaceID = new(recovery.Text(*at)), &namespace
	return a.WithAPI(cmd.Context(), func(ctx context.Context, c *apiclient.Client) error {
		source, err := a.DatabaseNamed(ctx, f.source)
		if err != nil {
			return err
		}
		b.Source = &source
		made, err := c.Previews.Create(ctx, b)
		if err != nil {
			return err
		}
		if err := showCreated(a, made); err != nil || made.Operation == nil {
			return err
		}
		if !f.wait.Wait {
			a.Note("it is being made\nfollow it with: %s", a.Onward("svc", "operations", "wait", string(made.Operation.ID)))
			return nil
		}
		ended, err := a.Follow(ctx, c, *made.Operation)
		if err == nil && ended.Status != operation.Succeeded {
			err = app.FailedOperation{Operation: ended}
		}
		return err
	})
}

// sourceOf is the database whose data a preview had at first; nil where it had none.
func sourceOf(p wire.Preview) any {
	if p.Source == nil {
		return nil
	}
	return *p.Source
}
