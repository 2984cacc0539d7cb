package rollout

import (
	"slices"
	"strings"
	"testing"

	"github.com/pgherd/pgherd/core/fault"
)

// opens is the table of the decisions, written a second time: the feature, the enrolment and the answer of a closed gate.
var opens = map[Gate]string{
	AdditionalRoles:  "additional-roles - FEATURE_DISABLED",
	ExtensionCatalog: "extension-catalog - FEATURE_NOT_AVAILABLE",
	Restore:          "restore restore FEATURE_NOT_AVAILABLE",
	RestoreUpload:    "restore restore-upload FEATURE_NOT_AVAILABLE",
	Clone:            "clone clone FEATURE_NOT_AVAILABLE",
	Delete:           "delete delete FEATURE_NOT_AVAILABLE",
	DeletedDatabases: "deleted-recovery - FEATURE_NOT_AVAILABLE",
	Recover:          "deleted-recovery recover FEATURE_NOT_AVAILABLE",
	RecoverPreview:   "preview-recovery recover FEATURE_NOT_AVAILABLE",
	LegacyRoles:      "legacy-roles legacy-roles FEATURE_NOT_AVAILABLE",
}

// Each gate opens with exactly what its row names, and is closed while one of these is missing and everything else is granted.
func TestGates(t *testing.T) {
	if len(Rules) != len(opens) {
		t.Fatalf("%d rules, want %d", len(Rules), len(opens))
	}
	features, enrolments := Features(), append(Routes(), "legacy-roles")
	for gate, row := range opens {
		want := strings.Fields(row)
		feature, enrolment, closed := want[0], want[1], fault.Code(want[2])
		withoutEnrolment := closed
		if enrolment == "-" {
			withoutEnrolment = ""
		}
		for _, c := range []struct {
			granted Grants
			want    fault.Code
		}{
			{Grants{Features: []string{feature}, Enrolments: []string{enrolment}}, ""},
			{Grants{}, closed},
			{Grants{Features: without(features, feature), Enrolments: enrolments}, closed},
			{Grants{Features: features, Enrolments: without(enrolments, enrolment)}, withoutEnrolment},
		} {
			if err := gate.Check(c.granted); c.want == "" && err != nil || c.want != "" && !fault.Has(err, c.want) {
				t.Errorf("%s with %v: %v, want %q", gate, c.granted, err, c.want)
			}
		}
	}
}

func TestAnUnknownGateIsClosed(t *testing.T) {
	everything := Grants{Features: append(Features(), ""), Enrolments: append(Routes(), "")}
	for _, g := range []Gate{"", "flying"} {
		if err := g.Check(everything); !fault.Has(err, fault.FeatureNotAvailable) || g.Known() {
			t.Errorf("%q: %v", g, err)
		}
	}
}

// What an operator can name is exactly what a gate asks for.
func TestNames(t *testing.T) {
	const features = "additional-roles extension-catalog restore clone delete deleted-recovery preview-recovery legacy-roles"
	if got := strings.Join(Features(), " "); got != features {
		t.Errorf("features: %s", got)
	}
	if got := strings.Join(Routes(), " "); got != "restore restore-upload clone delete recover" {
		t.Errorf("routes: %s", got)
	}
	for _, name := range Features() {
		if err := CheckFeature(name); err != nil {
			t.Error(err)
		}
	}
	for _, name := range append(Routes(), All) {
		got, err := ParseRoute(name)
		if want := []string{name}; err != nil || (name != All && !slices.Equal(got, want)) || (name == All && len(got) != 5) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	for _, name := range []string{"", "flying", "legacy-roles", "Clone"} {
		if _, err := ParseRoute(name); !fault.Has(err, fault.ValidationError) {
			t.Errorf("route %q: %v", name, err)
		}
	}
	for _, name := range []string{"", "flying", "restore-upload", "Clone"} {
		if err := CheckFeature(name); !fault.Has(err, fault.ValidationError) {
			t.Errorf("feature %q: %v", name, err)
		}
	}
}

// Who takes a route for a feature, or the reverse, is told the right command.
func TestAnotherKindIsNamed(t *testing.T) {
	for name, want := range map[string]string{
		"restore-upload": "--route restore-upload; it also needs the feature restore",
		"recover":        "--route recover; it also needs the feature deleted-recovery or preview-recovery",
		"flying":         "must be one of additional-roles",
	} {
		if err := CheckFeature(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("feature %s: %v", name, err)
		}
	}
	for name, want := range map[string]string{
		"additional-roles": "pgherd admin feature enable additional-roles", "legacy-roles": "pgherd admin legacy-roles activate",
		"flying": "must be one of restore, ",
	} {
		if _, err := ParseRoute(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("route %s: %v", name, err)
		}
	}
}

// Previews pass the gates that are named here, and no other: what is new is closed to them.
func TestGatesOfPreviews(t *testing.T) {
	open := []Gate{AdditionalRoles, ExtensionCatalog, DeletedDatabases, RecoverPreview, LegacyRoles}
	for gate := range opens {
		err := gate.AdmitsPreview()
		if slices.Contains(open, gate) != (err == nil) || err != nil && !fault.Has(err, fault.PreviewConflict) {
			t.Errorf("%s: %v", gate, err)
		}
	}
}

func without(list []string, name string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == name })
}
