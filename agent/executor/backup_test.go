package executor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/pgherd/pgherd/agent/jobs"
	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/id"
)

type locked struct{ error }

func (locked) ForCustomer() string { return "a table stayed locked" }

// A customer cannot read the agent's log, so what can be said is said; what else went wrong stays in the log.
func TestAnAbandonedBackupSaysWhatItCan(t *testing.T) {
	for want, cause := range map[string]error{
		"a table stayed locked":    fmt.Errorf("dump: %w", locked{errors.New("55P03 at 10.0.0.1")}),
		"the agent's log says why": errors.New("connect to 10.0.0.1: refused"),
	} {
		report := failure(cause)
		if report.State != command.BackupFailed {
			t.Errorf("%+v", report)
		}
		if !strings.HasSuffix(report.Message, want) || strings.Contains(report.Message, "10.0.0.1") {
			t.Errorf("%q, want %q", report.Message, want)
		}
	}
}

func TestAStopWaitsForNoBackupForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		deaf := func(context.Context, *job) (command.BackupReport, error) {
			<-release
			return command.BackupReport{}, errors.New("released")
		}
		slots := jobs.NewSlots(4)
		x := &Executor{log: zap.NewNop(), jobs: map[string]*job{
			"1": startJob(Backup{}, slots.Ask("ada"), deaf), "2": startJob(Backup{}, slots.Ask("ada"), deaf),
		}}
		began := time.Now()
		x.stopJobs()
		if took := time.Since(began); took != stopTime {
			t.Errorf("it took %s", took)
		}
		close(release)
	})
}

// However many jobs of one account hang, another account's starts at once. One of them that is canceled while it waits ends at
// once, and one that ends makes room for the next.
func TestHangingJobsLeaveSlotsToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots, ctx := jobs.NewSlots(4), t.Context()
		x := &Executor{jobs: map[string]*job{}}
		begun := map[id.OperationID]bool{}
		hang := func(ctx context.Context, j *job) (r command.BackupReport, err error) {
			begun[j.backup.OperationID] = true
			<-ctx.Done()
			return r, ctx.Err()
		}
		for _, n := range []string{"1", "2", "3", "4", "5", "6"} {
			x.jobs[n] = startJob(Backup{OperationID: id.OperationID(n)}, slots.Ask("ada"), hang)
			synctest.Wait()
		}
		brief := func(context.Context, *job) (command.BackupReport, error) {
			return command.BackupReport{State: command.BackupDone}, nil
		}
		other, began := startJob(Backup{}, slots.Ask("bob"), brief), time.Now()
		<-other.done
		if other.report.State != command.BackupDone || time.Since(began) > 0 {
			t.Errorf("the other account's job: %+v, %v, after %s", other.report, other.err, time.Since(began))
		}
		if len(begun) != 2 || x.jobs["3"].standing() != (command.BackupReport{State: command.BackupRunning, Stage: "queued"}) {
			t.Errorf("begun are %v, and the next is %+v", begun, x.jobs["3"].standing())
		}
		for _, n := range []string{"3", "1"} {
			if err := x.endJob(ctx, n); err != nil {
				t.Error(err)
			}
		}
		synctest.Wait()
		if len(begun) != 3 || !begun["4"] {
			t.Errorf("begun are %v after the third and the first were canceled", begun)
		}
		x.stopJobs()
	})
}
