package driver

import (
	"github.com/pgherd/pgherd/acceptance/spec"
	"github.com/pgherd/pgherd/core/controlplane"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/role"
)

// showRole shows a role as every answer but a list does.
func showRole(s controlplane.RoleState) spec.Role {
	return spec.Role{
		RoleID: string(s.ID), Profile: role.Profile, DisplayName: s.DisplayName, AccessProfile: string(s.AccessProfile),
		Username: s.Username, Ordinal: s.Ordinal, ConnectionLimit: s.ConnectionLimit, Generation: s.SetGeneration,
		CredentialGeneration: s.CredentialGeneration, CredentialExpiresAt: s.CredentialExpiresAt, Status: string(s.Status),
	}
}

func showListedRole(s controlplane.RoleState) spec.Role {
	r := showRole(s)
	if s.Status == role.Updating {
		r.OperationID = spec.Text(string(s.ChangeID))
	}
	return r
}

func showWay(r database.Record, password string) spec.Way {
	return spec.Way{Host: r.Host, Port: r.Port, Database: r.Name, TLSRequired: true, Password: password}
}

func showChange(c role.Change) spec.RoleChange {
	return spec.RoleChange{
		OperationID: string(c.ID), RoleID: string(c.RoleID), Profile: role.Profile, Kind: string(c.Kind), Status: string(c.Status),
		CredentialGeneration: c.CredentialGeneration,
	}
}

func showRemoval(m controlplane.Removal) spec.Removal {
	if m.Done {
		return spec.Removal{RoleID: string(m.RoleID), Status: string(role.Removed)}
	}
	return spec.Removal{RoleID: string(m.RoleID), Status: string(role.Pending), Phase: m.Phase, OperationID: string(m.OperationID)}
}

func showLogin(l controlplane.ManagedLogin) spec.ManagedLogin {
	return spec.ManagedLogin{
		Login: string(l.Login), Username: l.Username, ConnectionLimit: l.ConnectionLimit, CredentialGeneration: l.CredentialGeneration,
	}
}

func showRotation(l controlplane.LoginRotation) spec.LoginRotation {
	return spec.LoginRotation{
		OperationID: string(l.ID), Login: string(l.Login), Kind: string(l.Kind), Status: string(l.Status),
		CredentialGeneration: l.CredentialGeneration, Password: l.Password,
	}
}
