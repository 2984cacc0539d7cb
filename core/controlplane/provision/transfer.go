package provision

import (
	"context"
	"fmt"

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

// AdmitPeer has the agent of the server that has a database admit the one of the server that it comes to, and makes sure that
// this one reaches it: nothing has been asked of the database's customers yet. refused says why it does not, for good.
func AdmitPeer(
	ctx context.Context, p *base.Base, l *work.Lease, db id.DatabaseID, from, to id.ServerID,
) (refused *fault.Error, err error) {
	has, agent, err := p.ServerOf(ctx, from)
	if err != nil {
		return nil, err
	}
	peer, err := p.PeerOf(has, l.Operation())
	if err != nil {
		return nil, err
	}
	_, err = work.Send(ctx, l, "admit_peer", agent, command.AdmitPeer{
		DatabaseID: db, TokenSHA256: command.HashToken(peer.Token), Generation: 1,
	})
	switch {
	case base.RefusedForGood(err):
		return fault.Wrap(err, fault.AgentError, "the server of the database does not let the other one in"), nil
	case err != nil:
		return nil, err
	}
	gets, agent, err := p.ServerOf(ctx, to)
	if err != nil {
		return nil, err
	}
	return reach(ctx, l, agent, gets.Name, has.Name, peer)
}

// mostReaches is how often an agent tries to reach another one, which may be starting just now.
const mostReaches = 4

// reach has the agent of a server try whether it reaches that of another one, which has admitted it.
func reach(
	ctx context.Context, l *work.Lease, a ports.Agent, name, other string, peer command.Peer,
) (refused *fault.Error, err error) {
	o := l.Operation()
	found, err := ports.Ask(ctx, a, command.ReachPeer{Operation: o.ID, Peer: peer})
	if err != nil || found.Why == "" {
		return nil, err
	}
	err = fmt.Errorf("the agent of %s does not reach the agent of %s: %s", name, other, found.Why)
	if o.Attempts < mostReaches {
		return nil, err
	}
	return fault.Wrap(err, fault.AgentError, "the agent of %s does not reach the agent of %s: have the network let it connect to "+
		"that one's URL and port, as server show says them, and order it again", name, other), nil
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
