package agent

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/pgherd/pgherd/acceptance/backuptest"
	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/sessions"
	"github.com/pgherd/pgherd/agent/store"
)

// What backups have left may stay for long, and is looked for every few seconds. The log says it after growing pauses.
func TestWhatBackupsHaveLeftDoesNotFillTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, said := observer.New(zap.WarnLevel)
		files := store.New(t.TempDir(), store.Options{Reserve: 1})
		server := sessions.Server{Host: "/nonexistent", Port: 1, User: "x", Maintenance: "x"}
		nowhere := backuptest.NewAgent(backuptest.Config{Server: server}, files)
		a := &Agent{log: zap.New(core), copies: nowhere.Copies, uploads: nowhere.Uploads}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		a.sweepBackups(ctx)
		check.NoError(t, nowhere.Room.Close())
		if n := said.FilterMessage("what backups have left is not removed").Len(); n < 3 || n > 5 {
			t.Errorf("said %d times in ten minutes", n)
		}
	})
}
