package driver

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/pgherd/pgherd/acceptance/spec"
)

func rolePath(database, role string) string {
	return databasesPath + "/" + database + "/custom-roles/" + role
}

// exchange sends a request about roles and reads its answer into out. Whatever it answers must not be stored. pending says
// whether the answer is one of something that goes on.
func (c client) exchange(method, path string, body, out any, header ...string) (pending bool, err error) {
	a, err := c.send(method, path, body, header...)
	switch {
	case err != nil:
		return false, err
	case a.Header.Get("Cache-Control") != "no-store":
		return false, fmt.Errorf("%s %s: an answer with status %d may be stored", method, path, a.Status)
	case a.Status >= 400:
		return false, spec.ReadRefusal(a)
	}
	return a.Status == http.StatusAccepted, json.Unmarshal(a.Body, out)
}

// settled is exchange for answers that are final.
func (c client) settled(method, path string, body, out any, header ...string) error {
	pending, err := c.exchange(method, path, body, out, header...)
	if err == nil && pending {
		err = fmt.Errorf("%s %s: status 202", method, path)
	}
	return err
}

// progress checks that 202 comes with what is pending, and nothing else.
func progress(pending bool, status string, err error) error {
	if err == nil && pending != (status == "pending") {
		return fmt.Errorf("status 202: %t; the answer says %s", pending, status)
	}
	return err
}

// Roles implements spec.RoleAPI.
func (c client) Roles(database string, revoked bool) ([]spec.Role, error) {
	path := databasesPath + "/" + database + "/custom-roles"
	if revoked {
		path += "?includeRevoked=true"
	}
	var answer struct{ Roles []spec.Role }
	err := c.settled(http.MethodGet, path, nil, &answer)
	return answer.Roles, err
}

// CreateRole implements spec.RoleAPI.
func (c client) CreateRole(database string, n spec.NewRole) (r spec.Role, err error) {
	path := databasesPath + "/" + database + "/custom-roles"
	err = c.settled(http.MethodPost, path, n, &r, idempotencyKey, n.IdempotencyKey)
	return r, err
}

// PrepareRole implements spec.RoleAPI.
func (c client) PrepareRole(database, role string) (r spec.Role, err error) {
	accepted, err := c.exchange(http.MethodPost, rolePath(database, role)+"/prepare", nil, &r)
	if err == nil && !accepted {
		err = fmt.Errorf("the status of a prepared role is not 202")
	}
	return r, err
}

// AdmitRole implements spec.RoleAPI.
func (c client) AdmitRole(database, role string) (r spec.Role, err error) {
	err = c.settled(http.MethodPost, rolePath(database, role)+"/admit", nil, &r)
	return r, err
}

// RenameRole implements spec.RoleAPI.
func (c client) RenameRole(database, role, name string) (r spec.Renamed, err error) {
	err = c.settled(http.MethodPatch, rolePath(database, role), map[string]string{"displayName": name}, &r)
	return r, err
}

// RevealRole implements spec.RoleAPI.
func (c client) RevealRole(database, role string) (r spec.Credential, err error) {
	err = c.settled(http.MethodPost, rolePath(database, role)+"/credentials", nil, &r)
	c.remember(r.Password)
	return r, err
}

// DeleteRole implements spec.RoleAPI.
func (c client) DeleteRole(database, role string) (r spec.Removal, err error) {
	pending, err := c.exchange(http.MethodPost, rolePath(database, role)+"/delete", map[string]bool{"confirm": true}, &r)
	return r, progress(pending, r.Status, err)
}

// RemoveRole implements spec.RoleAPI.
func (c client) RemoveRole(database, role string) (r spec.Removal, err error) {
	pending, err := c.exchange(http.MethodDelete, rolePath(database, role), nil, &r)
	return r, progress(pending, r.Status, err)
}

var disconnect = map[string]any{"confirmDisconnect": true}

// ChangeRole implements spec.RoleChangeAPI.
func (c client) ChangeRole(database, role, kind, key string) (r spec.RoleChange, err error) {
	body := map[string]any{"kind": kind, "confirmDisconnect": true}
	pending, err := c.exchange(http.MethodPost, rolePath(database, role)+"/changes", body, &r, idempotencyKey, key)
	return r, progress(pending, r.Status, err)
}

// RoleChange implements spec.RoleChangeAPI.
func (c client) RoleChange(database, role, operation string) (r spec.RoleChange, err error) {
	err = c.settled(http.MethodGet, rolePath(database, role)+"/changes/"+operation, nil, &r)
	return r, err
}

// ReplayChange implements spec.RoleChangeAPI.
func (c client) ReplayChange(database, role, operation string) (r spec.RoleChange, err error) {
	pending, err := c.exchange(http.MethodPost, rolePath(database, role)+"/changes/"+operation, disconnect, &r)
	return r, progress(pending, r.Status, err)
}

func loginPath(database, login string) string {
	return databasesPath + "/" + database + "/managed-roles/" + login
}

// ManagedLogins implements spec.LoginAPI.
func (c client) ManagedLogins(database string) ([]spec.ManagedLogin, error) {
	var answer struct{ Roles []spec.ManagedLogin }
	err := c.settled(http.MethodGet, databasesPath+"/"+database+"/managed-roles", nil, &answer)
	return answer.Roles, err
}

// RevealLogin implements spec.LoginAPI.
func (c client) RevealLogin(database, login string) (r spec.LoginCredential, err error) {
	err = c.settled(http.MethodPost, loginPath(database, login)+"/credentials", nil, &r)
	c.remember(r.Password)
	return r, err
}

// RotateLogin implements spec.LoginAPI.
func (c client) RotateLogin(database, login, key string) (r spec.LoginRotation, err error) {
	pending, err := c.exchange(http.MethodPost, loginPath(database, login)+"/rotate", disconnect, &r, idempotencyKey, key)
	c.remember(r.Password)
	return r, progress(pending, r.Status, err)
}
