package main

import (
	"context"
	"fmt"
	"net/http"

	"github.com/google/uuid"
)

// madeRole is what the parts need of an additional role.
type madeRole struct {
	RoleID   string `json:"roleId"`
	Username string `json:"username"`
	Status   string `json:"status"`
}

const roleLimit = 40

func (c client) createRole(ctx context.Context, database, name string) (r madeRole, err error) {
	body := map[string]any{"displayName": name, "accessProfile": "read_only", "connectionLimit": roleLimit}
	path := "/databases/" + database + "/custom-roles"
	return r, c.callOnce(ctx, uuid.NewString(), http.MethodPost, path, body, http.StatusOK, &r)
}

// removeRole takes back all that createRole has made.
func (c client) removeRole(ctx context.Context, database, role string) error {
	path := "/databases/" + database + "/custom-roles/" + role + "/delete"
	return c.call(ctx, http.MethodPost, path, map[string]bool{"confirm": true}, http.StatusOK, &struct{}{})
}

// rotateRole fails also where the rotation is still pending: then nothing was measured.
func (c client) rotateRole(ctx context.Context, database, role string) error {
	path := "/databases/" + database + "/custom-roles/" + role + "/changes"
	body := map[string]any{"kind": "rotate", "confirmDisconnect": true}
	var change struct{ Status string }
	err := c.callOnce(ctx, uuid.NewString(), http.MethodPost, path, body, http.StatusOK, &change)
	if err == nil && change.Status != "completed" {
		err = fmt.Errorf("the rotation is %s", change.Status)
	}
	return err
}

// customer is a login as the API reveals it.
type customer struct {
	Database string `json:"database"`
	Username string `json:"username"`
	Password string `json:"password"`
}

func (c client) revealRole(ctx context.Context, database, role string) (who customer, err error) {
	return who, c.call(ctx, http.MethodPost, "/databases/"+database+"/custom-roles/"+role+"/credentials", nil, http.StatusOK, &who)
}

// revealLogin is about a login that came with the database.
func (c client) revealLogin(ctx context.Context, database, login string) (who customer, err error) {
	return who, c.call(ctx, http.MethodPost, "/databases/"+database+"/managed-roles/"+login+"/credentials", nil, http.StatusOK, &who)
}
