package app

import (
	"bufio"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/pgherd/pgherd/hosts/internal/terminal"
)

// Confirmed gives --yes to a command that cannot be undone or disconnects people.
func (a *App) Confirmed(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(&a.yes, "yes", false, "do not ask")
	return cmd
}

var errNotConfirmed = errors.New("nothing was done: the name was not repeated")

// Ask wants a name typed before what cannot be taken back. Where nobody can type it, --yes is needed.
func (a *App) Ask(name, what string) error {
	if _, err := a.api(); err != nil || a.yes { // Nobody is asked where the answer can lead nowhere.
		return err
	}
	if f, is := a.In.(*os.File); !is || !term.IsTerminal(int(f.Fd())) {
		return Usage("%s\nwithout a terminal, this needs --yes", what)
	}
	a.Note("%s", what)
	typed, err := a.askLine("Type " + name + " to go on: ")
	if err != nil {
		return err
	}
	if typed != name {
		return errNotConfirmed
	}
	return nil
}

// askLine shows a question and reads a line.
func (a *App) askLine(question string) (string, error) {
	if _, err := io.WriteString(a.Err, terminal.Visible(question)); err != nil {
		return "", err
	}
	line, err := a.UntilInterrupted(func() (string, error) { return bufio.NewReader(a.In).ReadString('\n') })
	if err != nil {
		a.Note("") // Nobody has ended the line of the question.
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	return strings.TrimSpace(line), nil
}

// AskSecret shows a question and reads a line from the terminal without showing it.
func (a *App) AskSecret(question string, fd int) (string, error) {
	if _, err := io.WriteString(a.Err, terminal.Visible(question)); err != nil {
		return "", err
	}
	before, err := term.GetState(fd)
	if err != nil {
		return "", err
	}
	text, err := a.UntilInterrupted(func() (string, error) {
		text, err := term.ReadPassword(fd)
		return string(text), err
	})
	a.Note("")
	if a.Ctx.Err() != nil {
		return "", errors.Join(err, term.Restore(fd, before)) // The read goes on, and would leave the terminal without echo.
	}
	return text, err
}

// UntilInterrupted reads what somebody types. Ctrl-C ends the wait, though not the read.
func (a *App) UntilInterrupted(read func() (string, error)) (string, error) {
	type result struct {
		text string
		err  error
	}
	typed := make(chan result, 1)
	go func() {
		text, err := read()
		typed <- result{text, err}
	}()
	select {
	case r := <-typed:
		return r.text, r.err
	case <-a.Ctx.Done():
		return "", a.Ctx.Err()
	}
}
