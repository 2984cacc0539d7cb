package agent

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/pgherd/pgherd/acceptance/check"
	"github.com/pgherd/pgherd/agent/artifact"
)

// What backups have left may stay for long, and is looked for every few seconds. The log says it once a minute.
func TestWhatBackupsHaveLeftDoesNotFillTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, said := observer.New(zap.WarnLevel)
		nowhere := artifact.New(artifact.Config{Host: "/nonexistent", Port: 1, User: "x", Maintenance: "x"}, nil)
		a := &Agent{log: zap.New(core), backuper: nowhere}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		a.sweepBackups(ctx, nil)
		check.NoError(t, nowhere.Close())
		if n := said.FilterMessage("what backups have left is not removed").Len(); n < 8 || n > 10 {
			t.Errorf("said %d times in ten minutes", n)
		}
	})
}
