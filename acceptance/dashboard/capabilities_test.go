package dashboard_test

import (
	"testing"

	"github.com/pgherd/pgherd/adapters/dashboard"
	"github.com/pgherd/pgherd/adapters/httpapi"
	"github.com/pgherd/pgherd/core/controlplane"
)

// Why a capability of the API has no page.
var without = map[string]string{
	"getRecoveryCertificate": "as getRecoveryWindow: svc databases certificate",
	"getRecoveryWindow":      "it asks a server's archive, which no page waits for: svc databases window",
	"compareMoments":         "what is read of it is a table for a terminal: svc databases diff",
	"findMoment":             "its query is SQL, and its answer takes minutes: svc databases bisect",
	"rescueTables":           "its tables are named as in SQL, and copied from by SQL: svc databases rescue",
	"reserveManagedRestore":  "spec, section Managed restore: in no dashboard",
	"advanceManagedRestore":  "spec, section Managed restore: in no dashboard",
	"announceUpload":         "gigabytes are sent in pieces that go on where they broke off, with their SHA-256: svc backups upload",
	"sendUpload":             "as announceUpload",
	"completeUpload":         "as announceUpload",
	"createPreview":          "spec, section Preview databases: previews are made and ended by preview CI keys",
	"extendPreview":          "as createPreview",
	"deletePreview":          "as createPreview",
	"setPreviewBackupPolicy": "as createPreview",
}

// Every capability of the API has a page, or a reason why it has none.
func TestEveryCapabilityHasAPage(t *testing.T) {
	cp := &controlplane.ControlPlane{}
	done := map[string]bool{}
	for _, p := range dashboard.Pages(cp, dashboard.Settings{}, nil) {
		for _, name := range p.Does {
			done[name] = true
		}
	}
	routes := map[string]bool{}
	for _, r := range httpapi.Routes(cp) {
		routes[r.Name] = true
		switch reason := without[r.Name]; {
		case !done[r.Name] && reason == "":
			t.Errorf("%s has neither a page nor a reason why", r.Name)
		case done[r.Name] && reason != "":
			t.Errorf("%s has a page, and a reason why it has none", r.Name)
		}
	}
	for name := range done {
		if !routes[name] {
			t.Errorf("a page does %s, which is no route", name)
		}
	}
	for name := range without {
		if !routes[name] {
			t.Errorf("%s is no route", name)
		}
	}
}
