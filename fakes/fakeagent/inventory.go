package fakeagent

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
)

func (s *Server) inventory(q command.AskInventory) command.Inventory {
	part := command.Inventory{Databases: []command.InventoryDatabase{}}
	for _, db := range slices.Sorted(maps.Keys(s.databases)) {
		if db <= q.After {
			continue
		}
		if len(part.Databases) == command.InventoryAtOnce {
			part.More = true
			break
		}
		one := s.databases[db].inventory()
		if s.faults.lists != nil {
			s.faults.lists(&one)
		}
		part.Databases = append(part.Databases, one)
	}
	return part
}

func (d *databaseState) inventory() command.InventoryDatabase {
	names := database.RoleNames(d.id, d.name)
	limit := -1
	if d.cap > 0 {
		limit = d.cap + database.SpareConnections
	}
	stands, isolated := d.name, ""
	if d.isolated {
		stands = isolatedName(d.id)
		isolated = stands
	}
	key := sha256.Sum256(d.key)
	found := command.InventoryDatabase{
		BackupKeyMark: hex.EncodeToString(key[:]),
		DatabaseID:    d.id, Name: d.name, RoleModel: d.model, ConnectionCap: d.cap, MadeBy: d.madeBy, AccountID: d.account,
		Made: true, Isolated: isolated, Open: d.open, Closed: d.settings.Closed, Networks: slices.Clone(d.networks),
		Timeouts: d.settings.Timeouts, ReadOnly: d.settings.ReadOnly,
		Actual: &command.ActualDatabase{
			Name: stands, Owner: names.Holder, ConnectionLimit: limit, AllowConnections: !d.isolated,
			LoginRights: []string{"connect", "create", "temporary"}, Settings: storedSettings(d.settings),
		},
	}
	plain := func(name, part string) {
		found.Roles = append(found.Roles, command.InventoryRole{
			Name: name, Part: part, Enabled: true, Actual: &command.ActualRole{ConnectionLimit: -1, Members: d.membersOf(name)},
		})
	}
	plain(names.Holder, command.PartHolder)
	if d.hasGroups() {
		plain(names.ReadGroup, command.PartReadGroup)
		plain(names.WriteGroup, command.PartWriteGroup)
	}
	for name, l := range d.logins {
		found.Roles = append(found.Roles, d.inventoryOf(name, l))
	}
	slices.SortFunc(found.Roles, func(a, b command.InventoryRole) int { return strings.Compare(a.Name, b.Name) })
	return found
}

func (d *databaseState) hasGroups() bool { return d.model == database.Managed || d.overlay }

// hasRights: its groups have what access profiles promise. One that they lack something of has nothing in the fake.
func (d *databaseState) hasRights() bool { return d.model == database.Managed || d.spread }

// rightsInside are those that a database is made with: the fake has no owner who could change them.
func (d *databaseState) rightsInside() command.Rights {
	if d.inside != nil {
		return *d.inside
	}
	names := database.RoleNames(d.id, d.name)
	has := command.Rights{PublicOwner: names.Owner, PublicOwnerLogin: true}
	if d.model == database.SingleLogin {
		stands := d.spread
		has.Overlay = &stands
	}
	if !d.hasRights() {
		return has
	}
	give := func(group string, on command.RightsOn, privileges ...string) {
		has.Groups = append(has.Groups, command.GroupRight{Role: group, On: on, Privileges: privileges})
	}
	for _, on := range []command.RightsOn{command.OnPublic, command.OnLaterSchemas} {
		give(names.ReadGroup, on, "usage")
		give(names.WriteGroup, on, "usage")
	}
	give(names.ReadGroup, command.OnLaterTables, "select")
	give(names.WriteGroup, command.OnLaterTables, "delete", "insert", "select", "update")
	give(names.ReadGroup, command.OnLaterSequences, "select")
	give(names.WriteGroup, command.OnLaterSequences, "select", "usage")
	return has
}

func storedSettings(c command.Configure) map[string]string {
	stored := map[string]string{}
	if t := c.Timeouts; t != nil {
		stored["statement_timeout"] = strconv.FormatInt(t.StatementMs, 10)
		stored["lock_timeout"] = strconv.FormatInt(t.LockMs, 10)
		stored["idle_in_transaction_session_timeout"] = strconv.FormatInt(t.IdleInTransactionMs, 10)
	}
	if c.ReadOnly {
		stored["default_transaction_read_only"] = "on"
	}
	if len(stored) == 0 {
		return nil
	}
	return stored
}

// inventoryOf is a login; additional ones have the limits and the group of what they were made for.
func (d *databaseState) inventoryOf(name string, l *login) command.InventoryRole {
	r := command.InventoryRole{
		Name: name, Part: d.partOf(name), Limit: l.limit, Enabled: l.open, Gate: command.GateClosed,
		CredentialGeneration: l.credential,
		Actual:               &command.ActualRole{MayLogIn: l.open && d.open && !d.settings.Closed, ConnectionLimit: -1},
	}
	if l.open && d.open {
		r.Gate = command.GateOpen
	}
	if l.limit > 0 {
		r.Actual.ConnectionLimit = l.limit + database.SpareConnections
	}
	if l.verifier != "" {
		sum := sha256.Sum256([]byte(l.verifier))
		r.Actual.VerifierMark = hex.EncodeToString(sum[:])
	}
	if l.until != nil {
		until := l.until.UTC()
		r.Actual.ValidUntil = &until
	}
	if group := d.groupOf(name, l); group != "" {
		r.Actual.MemberOf = []command.Membership{{Role: group, Inherit: true}}
	}
	return r
}

func (d *databaseState) partOf(name string) string {
	names := database.RoleNames(d.id, d.name)
	for _, l := range d.model.Logins() {
		if names.Of(l) == name {
			return string(l)
		}
	}
	return command.PartAdditional
}

// groupOf is the group whose rights a login has; empty where it has none's.
func (d *databaseState) groupOf(name string, l *login) string {
	names, profile := database.RoleNames(d.id, d.name), l.profile
	switch name {
	case names.Runtime:
		profile = role.ReadWrite
	case names.Readonly:
		profile = role.ReadOnly
	}
	switch profile {
	case role.ReadOnly:
		return names.ReadGroup
	case role.ReadWrite:
		return names.WriteGroup
	case role.Custom:
	}
	return ""
}

func (d *databaseState) membersOf(group string) (members []string) {
	for _, name := range slices.Sorted(maps.Keys(d.logins)) {
		if d.groupOf(name, d.logins[name]) == group {
			members = append(members, name)
		}
	}
	return members
}

// strays are copies, jobs and forwards: the fake leaves nothing else, and has no PgBouncer that could differ.
func (s *Server) strays() (found command.Strays) {
	found.Forwards = s.listForwards()
	for op, r := range s.restores {
		if r.switched && r.replaced == nil {
			continue
		}
		found.Copies = append(found.Copies, command.InventoryCopy{
			Name: "restore_" + id.Compact(op), Purpose: "restore", OperationID: op, DatabaseID: r.database, Wanted: true,
		})
	}
	for op, j := range s.jobs {
		if j.report.State == command.BackupRunning {
			found.Jobs = append(found.Jobs, command.InventoryJob{
				OperationID: op, Step: command.Step(j.spec), DatabaseID: j.spec.DatabaseID,
			})
		}
	}
	for op, o := range s.ledger.operations {
		found.Operations = append(found.Operations, command.InventoryOperation{OperationID: op, Epoch: o.epoch, Closed: o.closed})
	}
	if s.faults.listsStrays != nil {
		s.faults.listsStrays(&found)
	}
	return found
}

func (s *Server) fileList(q command.AskFiles) command.FileList {
	list := command.FileList{Files: []command.StoredFile{}}
	add := func(path string, size int) {
		if path > q.After {
			list.Files = append(list.Files, command.StoredFile{Path: path, SizeBytes: int64(size)})
		}
	}
	for key, f := range s.files {
		stem := string(key.database) + "/" + key.filename.Stem()
		if key.passing {
			stem = "passing/" + stem
		}
		add(stem+".set", 1)
		add(stem+".a.data", len(f.content))
		add(stem+".a.schema", 1)
		add(stem+".a.manifest", len(f.manifest))
	}
	s.sweepUploads()
	for key, u := range s.uploads {
		add("uploads/"+string(key.database)+"_"+string(key.upload)+".part", len(u.content))
	}
	if s.faults.listsFiles != nil {
		list.Files = s.faults.listsFiles(list.Files)
	}
	slices.SortFunc(list.Files, func(a, b command.StoredFile) int { return strings.Compare(a.Path, b.Path) })
	if list.More = len(list.Files) > command.FilesAtOnce; list.More {
		list.Files = list.Files[:command.FilesAtOnce]
	}
	return list
}
