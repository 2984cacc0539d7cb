package mailer_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/acceptance/eml"
	"github.com/pgherd/pgherd/adapters/mailer"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/mail"
)

func names(t *testing.T, dir string) (list []string) {
	t.Helper()
	for _, entry := range check.Must(os.ReadDir(dir))(t) {
		list = append(list, entry.Name())
	}
	return list
}

func TestFolderTakesAFileForEachMail(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "mailbox")
	f := check.Must(mailer.NewFolder(dir))(t)
	left := filepath.Join(dir, "."+string(mailID)+"-123")
	check.NoError(t, os.WriteFile(left, []byte("half a mail"), 0o600))
	for range 2 { // sent again, it replaces its file
		check.NoError(t, f.Send(t.Context(), letter()))
		if got := names(t, dir); len(got) != 1 || got[0] != string(mailID)+".eml" {
			t.Fatalf("the folder has %q", got)
		}
	}
	want := letter()
	for _, got := range check.Must(eml.ReadFolder(dir))(t) { // which checks that nobody else can read it
		if got.Text != want.Text || got.HTML != want.HTML || got.To != want.To || got.Subject != want.Subject {
			t.Errorf("it reads %+v", got)
		}
	}
	if info := check.Must(os.Stat(dir))(t); info.Mode().Perm() != 0o700 {
		t.Errorf("the folder is open to others: %s", info.Mode())
	}
}

func TestFolderRefuses(t *testing.T) {
	dir := t.TempDir()
	f := check.Must(mailer.NewFolder(dir))(t)
	outside, nobody := letter(), letter()
	outside.ID, nobody.To = id.MailID("../../etc/cron.d/x"), "bob@example.com\r\nX: y"
	if err := f.Send(t.Context(), outside); err == nil {
		t.Error("an ID that is a path was taken")
	}
	var refusal *mail.Refusal
	if err := f.Send(t.Context(), nobody); !errors.As(err, &refusal) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.Send(ctx, letter()); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	check.NoError(t, os.RemoveAll(dir))
	if err := f.Send(t.Context(), letter()); err == nil || errors.As(err, &refusal) {
		t.Errorf("into a folder that is gone: %v", err)
	}
}
