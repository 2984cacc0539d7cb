package crash_test

import (
	"slices"
	"testing"

	"github.com/pgherd/pgherd/acceptance/spec"
	"github.com/pgherd/pgherd/acceptance/stack"
	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/role"
)

// modelUnderTest is the kind of additional roles that cases are about, and what their caller does after a death.
type modelUnderTest string

const (
	managedRoles     modelUnderTest = ""           // the caller asks again
	legacyRoles      modelUnderTest = "legacy"     // the same
	reconciledLegacy modelUnderTest = "reconciled" // the caller has the last step reconciled, and asks again then
)

func (m modelUnderTest) legacy() bool { return m != managedRoles }

// name is that of a case about the model.
func (m modelUnderTest) name(what string) string {
	if m.legacy() {
		return string(m) + " " + what
	}
	return what
}

func (m modelUnderTest) conflict() fault.Code {
	if m.legacy() {
		return fault.LegacyRoleConflict
	}
	return fault.ManagedRoleConflict
}

// most is how many roles a shared database has before the next case moves to a new one.
func (m modelUnderTest) most() int {
	if m.legacy() {
		return role.MaxLegacyRoles
	}
	return 7 // below the limit of ten
}

func (h *shared) roles(api *stack.Host) spec.RoleCalls {
	if h.model.legacy() {
		return spec.LegacyCalls{LegacyRoles: h.user.at(api).LegacyRoles}
	}
	return h.user.at(api).Roles
}

// newDatabase makes one that may have roles of the model, once its owner has opted in.
func (h *shared) newDatabase(t *testing.T, w *world) wire.CreatedDatabase {
	t.Helper()
	if !h.model.legacy() {
		return h.user.create(t, w.api, newName("shared"))
	}
	name, single := newName("single"), database.SingleLogin
	made := must(h.user.at(w.api).Databases.Create(soon(t), wire.CreateDatabase{
		Name: name, DisplayName: name, RoleModel: &single,
	}))(t)
	must(w.Admin(soon(t), "legacy-roles", "activate", "--database", string(made.ID)))(t)
	return made
}

// optIn makes the overlay of the database, and returns it.
func (h *shared) optIn(t *testing.T, w *world) (made wire.Overlay) {
	t.Helper()
	noError(t, persists(soon(t), func() (pending bool, err error) {
		made, err = h.user.at(w.api).LegacyRoles.OptIn(soon(t), h.db.ID)
		return made.Status == database.OverlayReserved, err
	}))
	return made
}

// takeFurther prepares a role that is being made, grants it CONNECT as its owner, and has it admitted.
func (h *shared) takeFurther(t *testing.T, w *world, api *stack.Host, made wire.Role) (wire.Role, error) {
	t.Helper()
	if made.Status != role.Reserved && made.Status != role.SQLReady {
		return made, nil
	}
	prepared, err := h.user.at(api).LegacyRoles.Prepare(soon(t), h.db.ID, made.RoleID)
	if err != nil {
		return made, err
	}
	h.asOwner(t, w, prepared.GrantSQL)
	admitted, err := h.roles(api).Admit(soon(t), h.db.ID, made.RoleID)
	made.Status = admitted.Status
	return made, err
}

// reconcile asks what has become of the last step of a role, where the model's callers do that. It tells what is so on the
// server, and whoever asks again is told the same.
func (h *shared) reconcile(t *testing.T, w *world, of id.RoleID) {
	t.Helper()
	if h.model != reconciledLegacy {
		return
	}
	var found wire.ListedRole
	err := persists(soon(t), func() (pending bool, err error) {
		found, err = h.user.at(w.api).LegacyRoles.Reconcile(soon(t), h.db.ID, of)
		return false, err
	})
	stands := w.standing(t, of)
	switch codeOf(err) {
	case fault.RoleNotFound: // its removal was over
		if stands.exists {
			t.Errorf("the role is said to be removed, and stands: %+v", stands)
		}
		return
	case fault.LegacyRoleConflict:
		if !stands.open || stands.admitted {
			t.Errorf("the role is said to be open without an admission, and stands: %+v: %v", stands, err)
		}
		return
	}
	noError(t, err)
	h.notYet(t, w.api, found)
	if stands.changing || found.Status == role.Updating { // and the batch host goes on with it
		return
	}
	if !stands.as(found.Status) {
		t.Errorf("the role is said to be %s, and stands: %+v", found.Status, stands)
	}
	listed, present := h.find(t, w.api, found.DisplayName)
	if !present || listed.Status != found.Status || listed.CredentialGeneration != found.CredentialGeneration {
		t.Errorf("the role was found %+v, and is listed as %+v", found, listed)
	}
}

// standing is how a role stands on the server: what PostgreSQL, the gates and the agent's ledger say.
type standing struct {
	exists   bool
	open     bool // something lets it in
	admitted bool // its admission was proven
	changing bool // a change of it is pending, or has removed it meanwhile
}

func (w *world) standing(t *testing.T, of id.RoleID) (s standing) {
	t.Helper()
	var username string
	const record = "SELECT username, change_id IS NOT NULL OR status = 'removed' FROM roles WHERE id = $1"
	noError(t, w.meta.QueryRowContext(soon(t), record, of).Scan(&username, &s.changing))
	const query = `SELECT count(r.oid) > 0, coalesce(bool_or(r.rolcanlogin OR p.enabled OR g.open), false),
			EXISTS (SELECT FROM ledger.command c WHERE c.resource LIKE '%/login/' || $1 AND c.step = 'open' AND c.result IS NOT NULL)
		FROM pg_roles r LEFT JOIN ledger.role p ON p.oid = r.oid LEFT JOIN pooler.gate g ON g.login = r.rolname WHERE r.rolname = $1`
	noError(t, w.maintenance.QueryRowContext(soon(t), query, username).Scan(&s.exists, &s.open, &s.admitted))
	return s
}

// as reports whether a role that stands so has the status.
func (s standing) as(status role.Status) bool {
	switch status {
	case role.Reserved:
		return !s.open
	case role.SQLReady:
		return s.exists && !s.open
	case role.Ready:
		return s.exists && s.open && s.admitted
	case role.Revoked, role.Expired:
		return !s.open
	case role.Updating, role.Removed:
	}
	return false
}

// ofModels are the cases of every model of roles. Nobody reconciles what only the batch host died over.
func ofModels(of func(modelUnderTest) []killing) []killing {
	reconciled := slices.DeleteFunc(of(reconciledLegacy), func(k killing) bool { return k.in == inBatch })
	return slices.Concat(of(managedRoles), of(legacyRoles), reconciled)
}
