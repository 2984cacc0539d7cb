package admin

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/pgherd/pgherd/adapters/system"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/hosts/internal/terminal"
)

// ErrNotConfirmed is the error of a command that has done nothing, because nobody has confirmed what it destroys.
var ErrNotConfirmed = errors.New("nothing was done")

// asking gives --yes to a command that destroys what a customer has or works on. What only takes a right away, such as a key,
// asks nobody: a command gives it again, and it may be urgent.
func (m *metadata) asking(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(&m.yes, "yes", false, "do not ask")
	return cmd
}

// confirm shows what a command is about, and wants its name typed. Where nobody can type it, --yes is needed. It returns an
// ErrNotConfirmed.
func (m *metadata) confirm(cmd *cobra.Command, name, what string, about row) error {
	if m.yes {
		return nil
	}
	var text bytes.Buffer
	about.Print(terminal.Printer{Paper: terminal.Paper{To: &text, Width: lineWidth}, Now: system.NewClock().Now()})
	if _, err := fmt.Fprintf(cmd.ErrOrStderr(), "%s%s\n", text.String(), what); err != nil {
		return err
	}
	if !m.typed(cmd.InOrStdin()) {
		return fmt.Errorf("%w: without a terminal, this needs --yes", ErrNotConfirmed)
	}
	if _, err := fmt.Fprintf(cmd.ErrOrStderr(), "Type %s to go on: ", terminal.Visible(name)); err != nil {
		return err
	}
	line, err := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if strings.TrimSpace(line) != name {
		return fmt.Errorf("%w: the name was not repeated", ErrNotConfirmed)
	}
	return nil
}

// onTerminal reports whether somebody types what is read.
func onTerminal(in io.Reader) bool {
	f, is := in.(*os.File)
	return is && term.IsTerminal(int(f.Fd()))
}

// confirmDatabase asks whether a database is the one that is meant.
func (m *metadata) confirmDatabase(
	ctx context.Context, cmd *cobra.Command, o *operator.Operator, db id.DatabaseID, what string,
) error {
	if m.yes {
		return nil
	}
	d, err := o.DatabaseDetails(ctx, db)
	if err != nil {
		return err
	}
	shown := row{
		{"databaseId", d.ID}, {"name", d.Name}, {"displayName", d.DisplayName}, {"status", d.Status}, {"email", d.Email},
		{"server", d.Server}, {"size", terminal.Size(d.SizeBytes)}, {"backups", d.Backups}, {"lastVerifiedBackup", nil},
	}
	shown.set("lastVerifiedBackup", d.LastVerified != nil, func() row { return fileRow(*d.LastVerified) })
	return m.confirm(cmd, d.Name, what, shown)
}

// confirmOperation asks whether an operation is the one that is meant.
func (m *metadata) confirmOperation(ctx context.Context, cmd *cobra.Command, o *operator.Operator, op id.OperationID) error {
	if m.yes {
		return nil
	}
	of, err := o.Operation(ctx, op)
	if err != nil {
		return err
	}
	shown, name := row{{"operationId", of.ID}, {"type", of.Kind}, {"status", of.Status}, {"stage", of.Stage}}, string(of.ID)
	if d, err := o.DatabaseDetails(ctx, of.DatabaseID); err == nil { // its record may be gone
		name = d.Name
		shown = append(shown, row{
			{"databaseId", d.ID}, {"name", d.Name}, {"email", d.Email}, {"server", d.Server}, {"size", terminal.Size(d.SizeBytes)},
		}...)
	}
	return m.confirm(cmd, name, "End it?", shown)
}
