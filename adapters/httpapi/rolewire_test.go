package httpapi

import (
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/pgherd/pgherd/adapters/httpapi/wire"
	"github.com/pgherd/pgherd/core/controlplane/roles"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/role"
)

const (
	aRole     = `"roleId":"` + foreignID + `","profile":"custom",`
	aUsername = "pgh_0b5c1f4e7a524f0d9d3e1c2b3a4d5e6f_c3"
)

func someRole() roles.State {
	return roles.State{SetGeneration: 12, Role: role.Role{
		ID: foreignID, DatabaseID: knownID, Ordinal: 3, Username: aUsername, DisplayName: "Reports",
		AccessProfile: role.ReadOnly, ConnectionLimit: 5, Status: role.Ready, Key: "a key", Fingerprint: "a fingerprint",
		SetupID: knownID, Generation: 4, CredentialGeneration: 2, Verifier: "a verifier", Sealed: []byte("sealed"),
	}}
}

// The wire shapes of roles, byte for byte as the spec names their fields.
func TestWireShapesOfRoles(t *testing.T) {
	const fields = aRole + `"displayName":"Reports","accessProfile":"read_only","username":"` + aUsername + `","ordinal":3,` +
		`"connectionLimit":5,"generation":12,"credentialGeneration":2,`
	const way = `"host":"db.example","port":6432,"database":"shop","tlsRequired":true,"password":"pw"}`
	record := database.Record{ID: knownID, Name: "shop", Host: "db.example", Port: 6432}
	plain, updating, removing, ending := someRole(), someRole(), someRole(), someRole()
	updating.Status, updating.ChangeID = role.Updating, knownID
	removing.Status, removing.ChangeID = role.Revoked, knownID
	at := time.Date(2026, 3, 1, 12, 30, 0, 0, time.FixedZone("east", 3600))
	ending.CredentialExpiresAt = &at
	overlay := database.Overlay{OverlayID: knownID, OverlayStatus: database.OverlayReserved, OverlayGeneration: 7}
	change := role.Change{
		ID: knownID, DatabaseID: knownID, RoleID: foreignID, Username: aUsername, Kind: role.Rotation, Status: role.Pending,
		Key: "a key", Generation: 12, CredentialGeneration: 3, Verifier: "a verifier", Sealed: []byte("sealed"),
	}
	login := roles.ManagedLogin{
		Login: database.RuntimeLogin, Username: "pgh_x_rt", ConnectionLimit: 60, CredentialGeneration: 2,
	}
	rotation := roles.LoginRotation{Change: role.Change{
		ID: knownID, Login: database.OwnerLogin, Kind: role.Rotation, Status: role.Completed, CredentialGeneration: 2,
	}}
	told := rotation
	told.Password = "pw"
	const rotated = `{"operationId":"` + knownID + `","login":"owner","kind":"rotate","status":"completed","credentialGeneration":2`
	for _, c := range []struct {
		view any
		want string
	}{
		{viewRole(plain), `{` + fields + `"status":"ready"}`},
		{viewRole(updating), `{` + fields + `"status":"updating"}`},
		{viewRole(ending), `{` + fields + `"status":"ready","credentialExpiresAt":"2026-03-01T11:30:00Z"}`},
		{viewListedRole(plain), `{` + fields + `"status":"ready","operationId":null}`},
		{viewListedRole(updating), `{` + fields + `"status":"updating","operationId":"` + knownID + `"}`},
		{viewListedRole(removing), `{` + fields + `"status":"revoked","operationId":null}`},
		{wire.Roles[wire.ListedRole]{Roles: mapped([]roles.State{}, viewListedRole)}, `{"roles":[]}`},
		{wire.RevealedRole{Role: viewRole(plain), Credential: viewCredential(record, "pw")}, `{` + fields + `"status":"ready",` + way},
		{viewSetup(plain), `{` + aRole + `"username":"` + aUsername + `","displayName":"Reports","accessProfile":"read_only",` +
			`"ordinal":3,"status":"ready"}`},
		{viewGrant(plain, "shop"), `{` + aRole + `"username":"` + aUsername + `","displayName":"Reports",` +
			`"accessProfile":"read_only","ordinal":3,"status":"ready","databaseName":"shop",` +
			`"grantSql":"GRANT CONNECT ON DATABASE \"shop\" TO \"` + aUsername + `\";"}`},
		{viewOverlay(overlay), `{"overlayId":"` + knownID + `","generation":7,"status":"reserved"}`},
		{viewChange(change), `{"operationId":"` + knownID + `",` + aRole + `"kind":"rotate","status":"pending",` +
			`"credentialGeneration":3}`},
		{viewLogin(login), `{"login":"runtime","username":"pgh_x_rt","connectionLimit":60,"credentialGeneration":2}`},
		{wire.RevealedLogin{Login: viewLogin(login), Credential: viewCredential(record, "pw")},
			`{"login":"runtime","username":"pgh_x_rt","connectionLimit":60,"credentialGeneration":2,` + way},
		{viewLoginRotation(rotation), rotated + `}`},
		{viewLoginRotation(told), rotated + `,"password":"pw"}`},
	} {
		text, err := json.Marshal(c.view)
		if err != nil {
			t.Fatalf("%T: %v", c.view, err)
		}
		if string(text) != c.want {
			t.Errorf("%T:\n got %s\nwant %s", c.view, text, c.want)
		}
	}
}

func TestViewsOfRemovals(t *testing.T) {
	const r = `{"roleId":"` + foreignID + `","status":`
	for _, c := range []struct {
		removal roles.Removal
		want    string
	}{
		{roles.Removal{RoleID: foreignID, Done: true, OperationID: knownID}, r + `"removed"}`},
		{roles.Removal{RoleID: foreignID, Phase: "revoke", OperationID: knownID},
			r + `"pending","phase":"revoke","operationId":"` + knownID + `"}`},
		{roles.Removal{RoleID: foreignID, Phase: "remove", OperationID: knownID}, r + `"pending","phase":"remove"}`},
	} {
		if text, err := json.Marshal(viewRemoval(c.removal)); err != nil || string(text) != c.want {
			t.Errorf("%+v:\n got %s, %v\nwant %s", c.removal, text, err, c.want)
		}
	}
}
