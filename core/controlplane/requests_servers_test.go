package controlplane_test

import (
	"errors"
	"fmt"

	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/controlplane/adoptions"
	"github.com/pgherd/pgherd/core/controlplane/operator"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/move"
	"github.com/pgherd/pgherd/core/role"
	"github.com/pgherd/pgherd/core/server"
)

// ofServers is what operators do about servers, and about what these have of databases.
var ofServers = []wish{
	{
		name: "server",
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return errOf(cp.Operator.AddServer(w.ctx, newServer("two")))
		},
		sees: (*world).haveServers,
	},
	{
		name: "server, set",
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return errOf(cp.Operator.SetServer(w.ctx, w.machine.ID, operator.ServerChange{Capacity: new(7), AgentURL: "https://moved:1"}))
		},
		sees: (*world).haveServers,
	},
	{
		name: "server, checked",
		act: func(w *world, cp *controlplane.ControlPlane) error {
			_, _, err := cp.Operator.CheckServer(w.ctx, w.machine.ID, "")
			return err
		},
		sees: (*world).haveServers,
	},
	{
		name: "server, changed",
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return errOf(cp.Operator.ChangeServer(w.ctx, w.machine.ID, func(s *server.Server) { s.Capacity = 7 }))
		},
		sees: (*world).haveServers,
	},
	{
		name: "end of a server", prepare: (*world).hasAnother,
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return errOf(cp.Operator.RemoveServer(w.ctx, id.ServerID(w.holds[0])))
		},
		sees: (*world).haveServers,
	},
	{
		name: "end of a server with backups", prepare: (*world).hasAnother,
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return errOf(cp.Operator.RemoveServerAndBackups(w.ctx, id.ServerID(w.holds[0])))
		},
		sees: (*world).haveServers,
	},
	{
		name: "key of an archive, shown",
		act: func(w *world, cp *controlplane.ControlPlane) error {
			_, text, err := cp.Operator.ArchiveKey(w.ctx, w.machine.ID, "it burned")
			w.holds = []string{text}
			return err
		},
		sees: func(w *world) string { return fmt.Sprint(w.holds[0] == w.archiveKey(w.listedServer())) },
	},
	{
		name: "extensions, qualified",
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return errOf(cp.Operator.QualifyExtensions(w.ctx, w.machine.ID))
		},
		sees: func(w *world) string { return fmt.Sprint(must(w.Operator.Trials(w.ctx, w.machine))(w.t)) },
	},
	{
		name: "metadata that count",
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return cp.Operator.ConfirmMetadata(w.ctx, w.machine, anOrder)
		},
		sees: func(w *world) string { return fmt.Sprint(w.databases(), w.logsIn(w.latest)) },
	},
	{
		name: "drill",
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return cp.Operator.OrderDrill(w.ctx, operator.DrillOrder{ServerID: w.machine.ID, DatabaseID: w.source()})
		},
		sees: func(w *world) string { return fmt.Sprint(w.server.Copies(), w.databases()) },
	},
	{
		name: "drain", alone: true, prepare: (*world).movable,
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return errOf(cp.Operator.DrainServer(w.ctx, w.newDrain(), false))
		},
		sees: func(w *world) string {
			d, _ := w.drained()
			return fmt.Sprint(d.State, len(d.Left), w.reached(w.source()).Record().ServerID == w.other().ID)
		},
	},
	{
		name: "end of a drain", alone: true, prepare: func(w *world) {
			w.movable()
			must(w.drains())(w.t)
		},
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return errOf(cp.Operator.StopDrain(w.ctx, w.machine.ID, anOrder))
		},
		sees: func(w *world) string {
			d, _ := w.drained()
			return fmt.Sprint(d.State, w.reached(w.source()).Record().ServerID == w.machine.ID)
		},
	},
	{
		name: "end of forwards", alone: true, prepare: (*world).isSentOn,
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return cp.Operator.EndForwards(w.ctx, w.source(), "", anOrder)
		},
		sees: (*world).haveForwards,
	},
	{
		name: "forward, told again", alone: true, prepare: (*world).isSentOn,
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return cp.Moves.TellForward(w.ctx, w.source(), w.machine.ID)
		},
		sees: (*world).haveForwards,
	},
	{
		name: "upgrade, confirmed", alone: true, prepare: (*world).isUpgraded,
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return errOf(cp.Moves.ConfirmUpgrade(w.ctx, w.reached(w.source())))
		},
		sees: (*world).haveVersions,
	},
	{
		name: "upgrade, confirmed by an operator", alone: true, prepare: (*world).isUpgraded,
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return errOf(cp.Operator.ConfirmUpgrade(w.ctx, w.source(), anOrder))
		},
		sees: (*world).haveVersions,
	},
	{
		name: "adoption of a role", prepare: (*world).hasUnknownRole,
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return errOf(cp.Operator.AdoptRole(w.ctx, w.askedRole()))
		},
		sees: (*world).haveRoles,
	},
	{
		name: "end of a role that nobody knows", prepare: (*world).hasUnknownRole,
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return errOf(cp.Operator.DropRole(w.ctx, w.askedRole()))
		},
		sees: func(w *world) string { // whoever hears that it is not done asks again
			if len(w.rolesOf(w.anyRoles(role.ManagedRoles))) > 0 {
				equal(w.t, "done", must(w.Operator.DropRole(w.ctx, w.askedRole()))(w.t), true)
			}
			return w.haveRoles()
		},
	},
	{
		name: "adoption of backups", prepare: func(w *world) {
			back := w.store.Backup()
			w.backUp(w.reached(w.source()))
			w.back(back)
		},
		act: func(w *world, cp *controlplane.ControlPlane) error {
			list, err := cp.Operator.AdoptBackups(w.ctx, adoptions.AskedFiles{Database: w.source(), Order: anOrder})
			for _, f := range list {
				err = errors.Join(err, f.Err)
			}
			return err
		},
		sees: (*world).haveBackups,
	},
	{
		name: "end of backups that are gone", prepare: func(w *world) {
			w.backUp(w.reached(w.source()))
			back := w.store.Backup()
			ok(w.t, w.Backups.Delete(w.ctx, w.reached(w.source()), w.copied()))
			w.back(back)
		},
		act: func(w *world, cp *controlplane.ControlPlane) error {
			return errOf(cp.Operator.ForgetBackups(w.ctx, adoptions.AskedFiles{Database: w.source(), Order: anOrder}))
		},
		sees: (*world).haveBackups,
	},
	{
		name: "repair by the doctor", prepare: func(w *world) { w.server.SetOpen(w.source(), false) },
		act: func(w *world, cp *controlplane.ControlPlane) error {
			o := brief
			o.Repair = true
			found, err := cp.Operator.Examine(w.ctx, w.machine, o)
			for _, d := range found {
				if d.Failed != nil {
					err = d.Failed
				}
			}
			return err
		},
		sees: func(w *world) string { return fmt.Sprint(len(w.examined(brief)), w.logsIn(w.latest)) },
	},
}

// hasAnother adds a server.
func (w *world) hasAnother() {
	w.t.Helper()
	s, _ := w.another("two", 0)
	w.holds = []string{string(s.ID)}
}

// haveServers are the servers as operators see them.
func (w *world) haveServers() (list string) {
	w.t.Helper()
	for _, s := range must(w.Operator.Servers(w.ctx))(w.t) {
		list += fmt.Sprint(s.Name, " ", s.AgentURL, " ", s.Capacity, ", ")
	}
	return list
}

func (w *world) newDrain() move.Drain {
	return move.Drain{ServerID: w.machine.ID, AtOnce: 2, By: anOrder.By, Reason: anOrder.Reason}
}

func (w *world) isSentOn() {
	w.movable()
	w.sentOn()
}

func (w *world) haveForwards() string {
	w.t.Helper()
	w.forwarding()
	return fmt.Sprint(len(must(w.Operator.Forwards(w.ctx))(w.t)), w.comesTo(w.home()))
}

// isUpgraded moves the database to a server of a later version.
func (w *world) isUpgraded() {
	w.t.Helper()
	w.movable()
	w.changesOther(func(s *server.Server) { s.PostgresVersion = 18 })
	w.tries(w.other().ID)
	must(w.moves(w.ControlPlane))(w.t)
	w.work(w.ControlPlane)
}

func (w *world) haveVersions() string {
	w.t.Helper()
	r := w.reached(w.source()).Record()
	return fmt.Sprint(r.PostgresVersion, r.WayBack)
}

// hasUnknownRole has the metadata go back to before a role was made.
func (w *world) hasUnknownRole() {
	w.t.Helper()
	back := w.store.Backup()
	w.holds = []string{w.anyRoles(role.ManagedRoles).role("report").Username}
	w.back(back)
}

func (w *world) askedRole() adoptions.AskedRole {
	return adoptions.AskedRole{Database: w.source(), Username: w.holds[0], Order: anOrder}
}

func (w *world) haveBackups() string {
	w.t.Helper()
	return fmt.Sprint(len(w.backups(w.reached(w.source()))), w.server.Files())
}
