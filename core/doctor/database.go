package doctor

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/pgherd/pgherd/core/command"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/role"
)

// Database is what the metadata say of a database.
type Database struct {
	database.Record
	Logins   []Login
	Roles    []role.Role // additional ones that are not removed
	Networks []netip.Prefix
	// BackupKey encrypts its backups; nil: it could not be opened with the key ring.
	BackupKey []byte
	// Wanted are the settings of the service.
	Wanted command.Configure
	// Busy says that an operation is open that is about it, or a change of one of its logins: nothing is said of it then.
	Busy bool
	// Refused is why the server refuses to purge it; empty where it does not. Nobody but an operator can mend that.
	Refused string
	// MayLack says that the server need not have it: it was never whole, and is deleted.
	MayLack bool
}

// Login is one that came with the database. Its verifier is what PostgreSQL should have stored.
type Login struct {
	Login              database.Login
	Username, Verifier string
	Generation         int64 // of the credential: 1 is that of the creation
}

// presence is what a status means for the server.
type presence struct {
	settled bool // a database can have it without an open operation
	open    bool // customers may log in
	out     bool // it is out of service, under another name
	stands  bool // it is in service, whoever gets in
}

var presences = map[database.Status]presence{
	database.Creating: {},
	database.Active:   {settled: true, open: true, stands: true},
	database.Stopped:  {settled: true, stands: true},
	database.Deleting: {},
	database.Error:    {stands: true},
	database.Deleted:  {settled: true, out: true},
	database.Purging:  {},
}

// Open reports whether customers may log in to a database of a status, and whether it is one of a database in service that no
// operation is open of.
func Open(s database.Status) (open, serves bool) {
	p := presences[s]
	return p.open, p.settled && !p.out
}

// look collects the findings about one database.
type comparison struct {
	want  *Database
	has   *command.InventoryDatabase
	found []Finding
}

func (l *comparison) say(c Code, subject, want, has string) {
	l.found = append(l.found, Finding{Code: c, DatabaseID: l.want.ID, Subject: subject, Want: want, Has: has})
}

// differ says so where two texts do.
func (l *comparison) differ(c Code, subject, want, has string) {
	l.mendable(c, subject, want, has, true)
}

// mendable is differ where the repair of the kind helps only if that is so: none is offered that would be refused, or change
// nothing.
func (l *comparison) mendable(c Code, subject, want, has string, helps bool) {
	if want == has {
		return
	}
	l.say(c, subject, want, has)
	l.found[len(l.found)-1].NoRepair = !helps
}

// ExamineDatabase compares a database; has is nil where the ledger does not have it, and want where there is no record.
func ExamineDatabase(want *Database, has *command.InventoryDatabase) []Finding {
	if want == nil {
		return []Finding{{Code: DatabaseUnknown, DatabaseID: has.DatabaseID, Subject: has.Name}}
	}
	l := &comparison{want: want, has: has}
	if want.Refused != "" {
		l.say(PurgeRefused, want.Name, "", want.Refused)
	}
	if want.Busy {
		return l.found
	}
	p := presences[want.Status]
	switch {
	case p.stands && has != nil && has.Isolated != "": // whatever else differs comes of that
		l.differ(ServiceDiffers, want.Name, service(false), service(true))
	case !p.settled:
		l.say(StatusStuck, want.Name, "", string(want.Status))
	case (has == nil || !has.Made) && want.MayLack:
	case has == nil || !has.Made:
		l.say(DatabaseMissing, want.Name, "", "")
	default:
		l.database(p)
		l.roles(p)
		if want.OverlayStatus == database.OverlayReserved && p.open {
			l.say(OverlayReserved, want.Name, "", "")
		}
	}
	return l.found
}

// database compares the database as a whole.
func (l *comparison) database(p presence) {
	want, has := l.want, l.has
	l.differ(DatabaseRenamed, want.Name, want.Name, has.Name)
	l.differ(RoleModelDiffers, want.Name, string(want.RoleModel), string(has.RoleModel))
	l.differ(CapDiffers, want.Name, strconv.Itoa(want.ConnectionCap), strconv.Itoa(has.ConnectionCap))
	if want.BackupKey == nil {
		l.differ(BackupKeyDiffers, want.Name, "one that the key ring opens", "")
	} else {
		l.differ(BackupKeyDiffers, want.Name, markOf(string(want.BackupKey)), has.BackupKeyMark)
	}
	if has.AccountID != "" {
		l.differ(AccountDiffers, want.Name, string(want.AccountID), string(has.AccountID))
	}
	if p.out && has.Isolated == "" { // of which only an operator knows whether it is to be deleted
		l.found = append(l.found, Finding{
			Code: ServiceDiffers, DatabaseID: want.ID, Subject: want.Name, Want: service(true), Has: service(false), NoRepair: true,
		})
	}
	l.mendable(AccessDiffers, want.Name, openness(p.open), openness(has.Open), !p.out)
	if !p.out { // what was changed last is sent when it is back
		l.differ(AllowlistDiffers, want.Name, networks(want.Networks), networks(has.Networks))
		l.differ(SettingsDiffer, want.Name, settings(want.Wanted.Timeouts, want.Wanted.ReadOnly, want.Wanted.Closed),
			settings(has.Timeouts, has.ReadOnly, has.Closed))
	}
	l.actual()
}

// ownerRights are those of the owner login, which it may pass on.
var ownerRights = []string{"connect", "create", "temporary"}

// actual compares PostgreSQL with the ledger.
func (l *comparison) actual() {
	name, has := l.want.Name, l.has.Actual
	if has == nil {
		l.say(DatabaseGone, name, "", "")
		return
	}
	l.differ(DatabaseRenamed, "in PostgreSQL "+name, cmp.Or(l.has.Isolated, name), has.Name)
	l.differ(DatabaseOwner, name, database.RoleNames(l.want.ID, name).Holder, has.Owner)
	l.differ(LimitDiffers, name, strconv.Itoa(databaseLimit(l.has.ConnectionCap)), strconv.Itoa(has.ConnectionLimit))
	l.differ(ConnectionsDiffer, name, openness(l.has.Isolated == ""), openness(has.AllowConnections))
	l.differ(PublicRights, name, "", strings.Join(has.PublicRights, ", "))
	l.differ(OwnerRights, name, strings.Join(ownerRights, ", "), strings.Join(has.LoginRights, ", "))
	// What an administrator has set of what the service does not set is left alone.
	stored := storedSettings(l.has.Timeouts, l.has.ReadOnly)
	for _, parameter := range slices.Sorted(maps.Keys(stored)) {
		l.mendable(SettingDiffers, parameter+" of "+name, stored[parameter], has.Settings[parameter], !presences[l.want.Status].out)
	}
}

// databaseLimit is PostgreSQL's own limit of a database with a cap.
func databaseLimit(connections int) int {
	if connections == 0 {
		return -1
	}
	return connections + database.SpareConnections
}

func service(out bool) string {
	if out {
		return "out of service"
	}
	return "in service"
}

func openness(open bool) string {
	if open {
		return "open"
	}
	return "closed"
}

func networks(list []netip.Prefix) string {
	texts := make([]string, 0, len(list))
	for _, n := range list {
		texts = append(texts, n.String())
	}
	slices.Sort(texts)
	if len(texts) == 0 {
		return "every address"
	}
	return strings.Join(slices.Compact(texts), ", ")
}

func settings(t *command.Timeouts, readOnly, closed bool) string {
	text := "no timeouts"
	if t != nil {
		text = fmt.Sprintf("timeouts %d, %d, %d ms", t.StatementMs, t.LockMs, t.IdleInTransactionMs)
	}
	if readOnly {
		text += ", read-only"
	}
	if closed {
		text += ", closed"
	}
	return text
}

// storedSettings are the values that PostgreSQL stores for settings.
func storedSettings(t *command.Timeouts, readOnly bool) map[string]string {
	stored := map[string]string{}
	if t != nil {
		stored["statement_timeout"] = strconv.FormatInt(t.StatementMs, 10)
		stored["lock_timeout"] = strconv.FormatInt(t.LockMs, 10)
		stored["idle_in_transaction_session_timeout"] = strconv.FormatInt(t.IdleInTransactionMs, 10)
	}
	if readOnly {
		stored["default_transaction_read_only"] = "on"
	}
	return stored
}

// wantedRole is how a role of a database should be.
type wantedRole struct {
	name, part string
	login      bool
	// unsettled is of an additional role, or a group, whose set-up is not over: only that it stays within its bounds can be said.
	unsettled  bool
	enabled    bool
	limit      int    // in the pooler
	verifier   string // empty: not compared
	generation int64  // of the credential, as the verifier
	validUntil string // of an additional role that may log in
	memberOf   string // empty: none
	mayHave    []string
	mayBeIn    []string // with the rights of each, and no more
	additional bool
}

// wanted lists the roles that the database should have.
func (d *Database) wanted() []wantedRole {
	n := database.RoleNames(d.ID, d.Name)
	all := []wantedRole{{name: n.Holder, part: command.PartHolder}}
	groups := make(map[role.AccessProfile]string)
	if reserved := d.OverlayStatus == database.OverlayReserved; reserved || d.HasGroups() {
		groups[role.ReadOnly], groups[role.ReadWrite] = n.ReadGroup, n.WriteGroup
		all = append(all, wantedRole{name: n.ReadGroup, part: command.PartReadGroup, unsettled: reserved},
			wantedRole{name: n.WriteGroup, part: command.PartWriteGroup, unsettled: reserved})
	}
	secrets := make(map[database.Login]Login)
	for _, l := range d.Logins {
		secrets[l.Login] = l
	}
	profiles := map[database.Login]role.AccessProfile{
		database.OwnerLogin: role.Custom, database.RuntimeLogin: role.ReadWrite, database.ReadonlyLogin: role.ReadOnly,
	}
	for _, l := range d.RoleModel.Logins() {
		all = append(all, wantedRole{
			name: n.Of(l), part: string(l), login: true, enabled: true, verifier: secrets[l].Verifier,
			generation: secrets[l].Generation, memberOf: groups[profiles[l]],
		})
	}
	var dead []string
	for _, r := range d.Roles {
		w := wantedRole{
			name: r.Username, part: command.PartAdditional, login: true, additional: true, limit: r.ConnectionLimit,
			enabled: r.Status == role.Ready, memberOf: groups[r.AccessProfile], mayHave: []string{n.Owner},
			unsettled: r.Status == role.Reserved || r.Status == role.SQLReady || r.Status == role.Updating,
		}
		if w.enabled {
			w.verifier, w.generation, w.validUntil = r.Verifier, r.CredentialGeneration, "for ever"
			if r.CredentialExpiresAt != nil {
				w.validUntil = r.CredentialExpiresAt.UTC().Format(timeFormat)
			}
		}
		all = append(all, w)
		if r.Status != role.Ready { // what keeps it from being removed, the owner is to clear
			dead = append(dead, r.Username)
		}
	}
	for i, group := range all {
		if group.part == string(database.OwnerLogin) {
			all[i].mayBeIn = dead
		}
		for _, other := range all {
			if other.memberOf == group.name {
				all[i].mayHave = append(all[i].mayHave, other.name)
			}
		}
	}
	return all
}

// timeFormat has what PostgreSQL keeps of a time.
const timeFormat = "2006-01-02T15:04:05.999999Z"

// roles compares the roles with the metadata.
func (l *comparison) roles(p presence) {
	has, known := map[string]command.InventoryRole{}, map[string]bool{}
	for _, r := range l.has.Roles {
		has[r.Name] = r
	}
	for _, w := range l.want.wanted() {
		known[w.name] = true
		r, found := has[w.name]
		switch {
		case !found && w.unsettled: // it is not known whether there is one yet
		case !found:
			l.say(RoleMissing, w.name, w.part, "")
		case r.Part != w.part:
			l.say(RoleUnknown, w.name, w.part, r.Part)
		case r.Actual == nil:
			l.say(RoleGone, w.name, w.part, "")
		default:
			l.role(p, w, r)
		}
	}
	for _, r := range l.has.Roles {
		if !known[r.Name] {
			l.say(RoleUnknown, r.Name, "", r.Part)
		}
	}
}

func (l *comparison) role(p presence, w wantedRole, r command.InventoryRole) {
	s := r.Actual
	l.differ(RolePowers, w.name, "", strings.Join(s.Powers, ", "))
	l.members(w, s)
	if w.unsettled {
		return
	}
	if w.login {
		l.login(p, w, r)
	} else {
		l.mendable(LoginDiffers, w.name, mayLogIn(false), mayLogIn(s.MayLogIn), false)
	}
	limit := -1
	if w.limit > 0 {
		limit = w.limit + database.SpareConnections
	}
	l.differ(LoginLimit, w.name, strconv.Itoa(limit), strconv.Itoa(s.ConnectionLimit))
}

func mayLogIn(may bool) string {
	if may {
		return "may log in"
	}
	return "may not log in"
}

// login compares whether a login may get in, and with which password.
func (l *comparison) login(p presence, w wantedRole, r command.InventoryRole) {
	s := r.Actual
	l.differ(LoginEnabled, w.name, mayLogIn(w.enabled), mayLogIn(r.Enabled))
	gate := command.GateClosed
	if p.open && w.enabled {
		gate = command.GateOpen
	}
	has := r.Gate
	if has == "" {
		has = "none"
	}
	// Opening a database opens it for the logins that the ledger has enabled, and shuts out none; closing it shuts out all.
	helps := !p.out && (!p.open || w.enabled && r.Enabled)
	l.mendable(GateDiffers, w.name, gate, has, helps && r.Gate != "")
	l.mendable(LoginDiffers, w.name, mayLogIn(p.open && w.enabled && !l.want.Wanted.Closed), mayLogIn(s.MayLogIn), helps)
	l.differ(RoleLimit, w.name, strconv.Itoa(w.limit), strconv.Itoa(r.Limit))
	// No rotation has set the first password: of that the ledger knows none.
	switch generation := max(1, r.CredentialGeneration); {
	case w.verifier == "" || r.Gate == "":
	case generation != w.generation:
		l.say(CredentialDiffers, w.name, strconv.FormatInt(w.generation, 10), strconv.FormatInt(generation, 10))
	case s.VerifierMark != markOf(w.verifier):
		l.say(PasswordDiffers, w.name, "", "")
	}
	if w.validUntil != "" {
		until := "for ever"
		if s.ValidUntil != nil {
			until = s.ValidUntil.UTC().Format(timeFormat)
		}
		l.differ(ValidityDiffers, w.name, w.validUntil, until)
	}
}

// markOf is the mark of a verifier or a key, as an agent reports it.
func markOf(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return hex.EncodeToString(sum[:])
}

// members compares the memberships of a role, and who is a member of it. The agent's own are left out by the agent, and those of
// its job logins here: what is left of them is found elsewhere.
func (l *comparison) members(w wantedRole, s *command.ActualRole) {
	want := command.Membership{Role: w.memberOf, Inherit: true}
	missing := w.memberOf != "" && w.enabled // a dead one needs none, and has none where it was moved to
	for _, m := range s.MemberOf {
		switch {
		case reflect.DeepEqual(m, want):
			missing = false
		case slices.Contains(w.mayBeIn, m.Role) && reflect.DeepEqual(m, command.Membership{Role: m.Role, Inherit: true}):
		case m.Role == want.Role:
			l.say(MembershipUnexpected, w.name, membership(want), membership(m))
			missing = false
		default:
			l.say(MembershipUnexpected, w.name, "", membership(m))
		}
	}
	if missing {
		l.say(MembershipMissing, w.name, membership(want), "")
	}
	for _, member := range s.Members {
		if !slices.Contains(w.mayHave, member) && !jobLogin.MatchString(member) {
			l.say(MemberUnexpected, w.name, "", member)
		}
	}
}

func membership(m command.Membership) string {
	text := "in " + m.Role
	for _, option := range []struct {
		name string
		set  bool
	}{{"inherit", m.Inherit}, {"set", m.Set}, {"admin", m.Admin}} {
		if option.set {
			text += " with " + option.name
		}
	}
	return text
}
