package agent

import (
	"time"

	"github.com/pgherd/pgherd/agent/executor"
	"github.com/pgherd/pgherd/agent/extensions"
	"github.com/pgherd/pgherd/agent/jobs"
)

const (
	// changes is how many extensions are changed at a time, of which an account has at most half. Each change has a connection
	// of its own, and may wait for locks of its customer's for as long as its patience lasts; backups do not wait for it.
	changes = 2
	// changeAdmin bounds the connections to the maintenance database that they share. No statement on one waits for a customer
	// for longer than a moment.
	changeAdmin     = 2
	changeAdminIdle = 10 * time.Second
)

// extensions prepares the work on extensions.
func (a *Agent) extensions(c Config) error {
	admin, err := a.postgres.OpenMaintenance(changeAdmin)
	if err != nil {
		return err
	}
	admin.SetConnMaxIdleTime(changeAdminIdle)
	a.changer = &extensions.Changer{
		Host: c.PostgresHost, Port: c.PostgresPort, Admin: admin,
		LockWait: c.ExtensionLockWait, Patience: c.ExtensionPatience, Log: a.log,
	}
	executor.OnJob(a.executor, a.changer.Kind(jobs.NewSlots(changes)))
	return nil
}
