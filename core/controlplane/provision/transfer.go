package provision

import (
	"context"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/ports"
)

// A database comes to another server by a file that passes: the agent that has the database makes the file and admits the other
// agent, whose Load reads the file from there.

// TransferCalls are the calls of AdmitPeer and Dump.
var TransferCalls = []string{"admit_peer", "dump"}

// AdmitPeer has the agent of a database's server admit the other one. peer is that server, as the other one reaches it. refused
// says why it does not, for good.
func AdmitPeer(
	ctx context.Context, l *work.Lease, a ports.Agent, db id.DatabaseID, peer command.Peer,
) (refused *fault.Error, err error) {
	_, err = work.Send(ctx, l, "admit_peer", a, command.AdmitPeer{
		DatabaseID: db, TokenSHA256: command.HashToken(peer.Token), Generation: 1,
	})
	if base.RefusedForGood(err) {
		return fault.Wrap(err, fault.AgentError, "the server of the database does not let the other one in"), nil
	}
	return nil, err
}

// Dump has an agent make a file that passes, or says how far that is. failed says why there will be none.
func Dump(
	ctx context.Context, l *work.Lease, a ports.Agent, c command.Backup,
) (report command.BackupReport, failed *fault.Error, err error) {
	report, err = work.Send(ctx, l, "dump", a, c)
	if base.RefusedForGood(err) {
		report, err = base.RefusedBackup(err), nil
	}
	if err == nil && report.State == command.BackupFailed {
		failed = base.JobFailed(report.Reason, report.Message, "the database server could not dump the database",
			"the database server has no room for a dump of the database")
	}
	return report, failed, err
}
