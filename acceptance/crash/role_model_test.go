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

// reconcile asks what has become of the last step of a role, where the model's callers do that. It tells what is so, and whoever
// asks again is told the same.
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
	if codeOf(err) == fault.RoleNotFound {
		return // its removal was over
	}
	noError(t, err)
	h.notYet(t, w.api, found)
	if found.Status == role.Updating { // and the batch host goes on with it
		return
	}
	listed, present := h.find(t, w.api, found.DisplayName)
	if !present || listed.Status != found.Status || listed.CredentialGeneration != found.CredentialGeneration {
		t.Errorf("the role was found %+v, and is listed as %+v", found, listed)
	}
}

// ofModels are the cases of every model of roles. Nobody reconciles what only the batch host died over.
func ofModels(of func(modelUnderTest) []killing) []killing {
	reconciled := slices.DeleteFunc(of(reconciledLegacy), func(k killing) bool { return k.in == inBatch })
	return slices.Concat(of(managedRoles), of(legacyRoles), reconciled)
}
