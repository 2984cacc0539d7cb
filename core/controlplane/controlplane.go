package controlplane

import (
	"context"
	"slices"

	"github.com/pgherd/pgherd/core/controlplane/access"
	"github.com/pgherd/pgherd/core/controlplane/backups"
	"github.com/pgherd/pgherd/core/controlplane/base"
	"github.com/pgherd/pgherd/core/controlplane/certificates"
	"github.com/pgherd/pgherd/core/controlplane/citokens"
	"github.com/pgherd/pgherd/core/controlplane/clones"
	"github.com/pgherd/pgherd/core/controlplane/databases"
	"github.com/pgherd/pgherd/core/controlplane/deletion"
	"github.com/pgherd/pgherd/core/controlplane/drills"
	"github.com/pgherd/pgherd/core/controlplane/extensions"
	"github.com/pgherd/pgherd/core/controlplane/keyrings"
	"github.com/pgherd/pgherd/core/controlplane/keys"
	"github.com/pgherd/pgherd/core/controlplane/live"
	"github.com/pgherd/pgherd/core/controlplane/looks"
	"github.com/pgherd/pgherd/core/controlplane/mails"
	"github.com/pgherd/pgherd/core/controlplane/members"
	"github.com/pgherd/pgherd/core/controlplane/moments"
	"github.com/pgherd/pgherd/core/controlplane/monitor"
	"github.com/pgherd/pgherd/core/controlplane/moves"
	"github.com/pgherd/pgherd/core/controlplane/operations"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/controlplane/people"
	"github.com/pgherd/pgherd/core/controlplane/previews"
	"github.com/pgherd/pgherd/core/controlplane/pruning"
	"github.com/pgherd/pgherd/core/controlplane/querytimeouts"
	"github.com/pgherd/pgherd/core/controlplane/rebuilds"
	"github.com/pgherd/pgherd/core/controlplane/rehearsals"
	"github.com/pgherd/pgherd/core/controlplane/restores"
	"github.com/pgherd/pgherd/core/controlplane/roles"
	"github.com/pgherd/pgherd/core/controlplane/rounds"
	"github.com/pgherd/pgherd/core/controlplane/settings"
	"github.com/pgherd/pgherd/core/controlplane/slowqueries"
	"github.com/pgherd/pgherd/core/controlplane/snapshots"
	"github.com/pgherd/pgherd/core/controlplane/storage"
	"github.com/pgherd/pgherd/core/controlplane/uploads"
	"github.com/pgherd/pgherd/core/controlplane/usage"
	"github.com/pgherd/pgherd/core/controlplane/webhooks"
	"github.com/pgherd/pgherd/core/controlplane/work"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/preview"
	"github.com/pgherd/pgherd/core/recovery"
	"github.com/pgherd/pgherd/ports"
)

type (
	// Ports are what the use cases need.
	Ports = base.Ports
	// Config holds an installation's choices.
	Config = base.Config
)

// CrashPoints lists the points of every capability: each is a moment between two steps of a flow. Config.Crash is called there,
// so that a test can kill the process and show that the next start continues the flow. Operations have their own; see
// work.Engine.Points.
var CrashPoints = slices.Concat(
	databases.CrashPoints, backups.CrashPoints, roles.CrashPoints, settings.CrashPoints, storage.CrashPoints,
	webhooks.CrashPoints, mails.CrashPoints, keyrings.CrashPoints, drills.CrashPoints,
)

// leaseFollows is what the outcomes of deletions and recoveries are to the lease of a preview. It goes with what is purged.
var leaseFollows = map[deletion.Outcome]preview.Event{ //nolint:exhaustive // see above
	deletion.Deleting: preview.End, deletion.Deleted: preview.Ended, deletion.Kept: preview.EndFailed,
	deletion.Recovering: preview.Recover, deletion.Recovered: preview.Recovered, deletion.NotRecovered: preview.RecoverFailed,
}

// ControlPlane is the set of use cases, all on the same ports.
type ControlPlane struct {
	Access        *access.Access
	Databases     *databases.Databases
	Allowlist     *databases.Allowlist
	Members       *members.Members
	People        *people.People
	Keys          *keys.Keys
	Pipelines     *keys.Pipelines
	QueryTimeouts *querytimeouts.QueryTimeouts
	SlowQueries   *slowqueries.SlowQueries
	Roles         *roles.Roles
	LegacyRoles   roles.LegacyRoles
	ManagedLogins *roles.ManagedLogins
	Backups       *backups.Backups
	Moments       *moments.Moments
	Certificates  *certificates.Certificates
	Extensions    *extensions.Extensions
	Restores      *restores.Restores
	Clones        *clones.Clones
	Moves         *moves.Moves
	Looks         *looks.Looks
	Previews      *previews.Previews
	Uploads       *uploads.Uploads
	Usage         *usage.Usage
	Deletion      *deletion.Deletion
	CITokens      *citokens.Tokens
	Operations    *operations.Operations
	Activity      *operations.Activity
	Webhooks      *webhooks.Webhooks
	Dispatcher    *webhooks.Dispatcher
	Mails         *mails.Dispatcher
	Work          *work.Engine
	Rounds        *rounds.Runner
	Brake         *base.Brake
	Monitor       *monitor.Monitor
	Live          *live.Live
	Operator      *operator.Operator
	Console       *operator.Console
	Keyring       *keyrings.Keyring
	Snapshots     *snapshots.Snapshots
}

// New checks the ports and builds the use cases. It starts nothing: the host must call Work.Run, Rounds.Run and Monitor.Run,
// with a Sender Dispatcher.Run, with a Mailer Mails.Run, with a Ring Keyring.Join and then Keyring.Run, and Live.Run where pages
// are served.
func New(p Ports, c Config) (*ControlPlane, error) {
	shared, err := base.New(p, c)
	if err != nil {
		return nil, err
	}
	sizes := storage.New(shared) // before settings, so that what a round decides is sent in the same one
	sets := settings.New(shared)
	back := moments.New(shared)
	restoring := restores.New(shared, sets, sizes.Restored, back.Admit)
	making := databases.New(shared)
	ring := keyrings.New(shared)
	copies, joining, persons := backups.New(shared), members.New(shared), people.New(shared)
	deleting := deletion.New(shared, copies.OpenStored, joining.Withdraw)
	pruning.Register(shared)
	drills.Register(shared)
	shared.RegisterInStep()
	cloning := clones.New(shared, sets, back.Admit)
	short := previews.New(shared, making.Make, deleting, previews.Copying{Copy: cloning.Copy, Admits: back.Admit})
	safe := snapshots.New(shared)
	rehearsed := rehearsals.New(shared, roles.Anew)
	moving := moves.New(shared, roles.Anew, rehearsed.Admits)
	runs := operator.New(shared, operator.Parts{
		Databases: making, Backups: copies, Restores: restoring, Clones: cloning,
		Deletion: deleting, Ring: ring, Helpdesk: persons.Helpdesk(), Rebuilds: rebuilds.New(shared, roles.Anew), Snapshots: safe,
		Moves: moving, Rehearsals: rehearsed,
	})
	deleting.Register(deletion.Other{Admits: short.Admits, Gate: short.RecoveryGate, Followed: func(
		ctx context.Context, tx ports.Tx, locked database.Record, o deletion.Outcome,
	) error {
		if e, follows := leaseFollows[o]; follows {
			return short.Follow(ctx, tx, locked, e)
		}
		return nil
	}})
	return &ControlPlane{
		Access:        access.New(shared),
		Databases:     making,
		Allowlist:     databases.NewAllowlist(shared),
		Members:       joining,
		People:        persons,
		Keys:          keys.New(shared),
		Pipelines:     keys.NewPipelines(shared),
		QueryTimeouts: querytimeouts.New(shared, sets),
		SlowQueries:   slowqueries.New(shared),
		Roles:         roles.New(shared),
		LegacyRoles:   roles.NewLegacy(shared),
		ManagedLogins: roles.NewManagedLogins(shared),
		Backups:       copies,
		Moments:       back,
		Certificates:  certificates.New(shared),
		Extensions:    extensions.New(shared),
		Restores:      restoring,
		Clones:        cloning,
		Moves:         moving,
		Looks: looks.New(shared, looks.Past{
			Admits: back.Admit,
			Window: func(ctx context.Context, r access.Reached) (recovery.Window, error) {
				shown, err := back.Window(ctx, r)
				return shown.Window, err
			},
		}),
		Previews:   short,
		Uploads:    uploads.New(shared, restoring.FromUpload),
		Usage:      usage.New(shared),
		Deletion:   deleting,
		CITokens:   citokens.New(shared),
		Operations: operations.New(shared),
		Activity:   operations.NewActivity(shared),
		Webhooks:   webhooks.New(shared),
		Dispatcher: webhooks.NewDispatcher(shared),
		Mails:      mails.NewDispatcher(shared),
		Work:       shared.Work,
		Rounds:     shared.Rounds,
		Brake:      shared.Brake,
		Monitor:    monitor.New(shared),
		Live:       live.New(shared),
		Operator:   runs,
		Console:    operator.NewConsole(runs),
		Keyring:    ring,
		Snapshots:  safe,
	}, nil
}
