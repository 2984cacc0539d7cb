package rebuild

import (
	"testing"
	"time"

	"github.com/pgherd/pgherd/core/backup"
	"github.com/pgherd/pgherd/core/database"
	"github.com/pgherd/pgherd/core/fault"
	"github.com/pgherd/pgherd/core/id"
)

var noon = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

func TestWhichBackupIsUsed(t *testing.T) {
	verified := backup.Backup{Filename: "20261124_110000.sql.gz", VerifiedAt: &noon}
	older := backup.Backup{Filename: "20261123_110000.sql.gz", VerifiedAt: &noon}
	damaged := backup.Backup{Filename: "20261124_113000.sql.gz", DamagedAt: &noon}
	for name, c := range map[string]struct {
		list []backup.Backup
		want backup.Filename
	}{
		"none":                   {nil, ""},
		"none that is verified":  {[]backup.Backup{{Filename: "20261124_113000.sql.gz"}, damaged}, ""},
		"the newest verified":    {[]backup.Backup{{Filename: "20261124_113000.sql.gz"}, damaged, verified, older}, verified.Filename},
		"the newest of verified": {[]backup.Backup{verified, older}, verified.Filename},
	} {
		if got, some := Pick(c.list); got.Filename != c.want || some != (c.want != "") {
			t.Errorf("%s: %q, %t", name, got.Filename, some)
		}
	}
}

func TestWhatIsMadeAnew(t *testing.T) {
	for _, s := range database.Statuses {
		want := s == database.Active || s == database.Stopped || s == database.Error
		if err := Admits(s, "", ""); (err == nil) != want || err != nil && !fault.Has(err, fault.DatabaseStateConflict) {
			t.Errorf("%s: %v", s, err)
		}
		for _, open := range [][2]id.OperationID{{"a", ""}, {"", "b"}} {
			if err := Admits(s, open[0], open[1]); !fault.Has(err, fault.DatabaseStateConflict) {
				t.Errorf("%s, with something open: %v", s, err)
			}
		}
	}
}

// What is lost never ends before it begins.
func TestWhatIsLost(t *testing.T) {
	in := Input{AsOf: noon, SeenAt: noon.Add(time.Minute)}
	if r := in.Result(); r.Source != FromArchive || !r.LostFrom.Equal(noon) || !r.LostTo.Equal(in.SeenAt) || r.Notes == nil {
		t.Errorf("%+v", r)
	}
	in.SeenAt, in.Backup = noon.Add(-time.Minute), backup.Filename("20261124_110000.sql.gz")
	if r := in.Result(); r.Source != FromBackup || r.Filename != in.Backup || !r.LostTo.Equal(noon) {
		t.Errorf("%+v", r)
	}
}
