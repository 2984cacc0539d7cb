package mailer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pgherd/pgherd/core/id"
	message "github.com/pgherd/pgherd/core/mail"
)

// Folder puts each mail into a file of its own, <mail ID>.eml, which appears whole. A mail that is sent again replaces its file.
type Folder struct {
	dir  string
	from sender
}

// folderSender is who the mails of a folder come from: nobody can answer.
const folderSender = "pgherd <pgherd@localhost>"

// NewFolder makes the folder where it is missing. Its files have tokens in them: nobody else can read them.
func NewFolder(dir string) (*Folder, error) {
	from, err := parseSender(folderSender)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("the folder of mails: %w", err)
	}
	return &Folder{dir, from}, nil
}

// Check implements ports.Mailer.
func (f *Folder) Check(to string) error { return message.CheckRecipient(to) }

// Send implements ports.Mailer.
func (f *Folder) Send(ctx context.Context, m message.Message) (err error) {
	out, err := f.from.write(m)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	f.removeLeftovers(m.ID)
	file, err := os.CreateTemp(f.dir, unfinished(m.ID)) // of mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name()) // the first error is the one to know
		}
	}()
	if _, err := out.WriteTo(file); err != nil {
		return errors.Join(err, file.Close())
	}
	if err := errors.Join(file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := os.Rename(file.Name(), filepath.Join(f.dir, string(m.ID)+".eml")); err != nil {
		return err
	}
	return syncDir(f.dir)
}

// unfinished is the pattern of the names of files that are being written.
func unfinished(m id.MailID) string { return "." + string(m) + "-*" }

// removeLeftovers removes what killed attempts have left of a mail.
func (f *Folder) removeLeftovers(m id.MailID) {
	left, _ := filepath.Glob(filepath.Join(f.dir, unfinished(m))) // the pattern is well formed
	for _, name := range left {
		_ = os.Remove(name) // it is tried again with the next attempt
	}
}

func syncDir(name string) error {
	dir, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
