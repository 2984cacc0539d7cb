package health

import (
	"strings"
	"testing"
)

// A server whose disks hold no backup is not healthy, whichever of them it is.
func TestADiskWithoutRoomForABackup(t *testing.T) {
	well := Disk{Of: "data", Free: 3 << 30, Reserve: 1 << 30}
	for name, c := range map[string]struct {
		disks []Disk
		says  string
	}{
		"none known":       {nil, ""},
		"well":             {[]Disk{well, well}, ""},
		"the least":        {[]Disk{well, {"backups", 1<<30 + LeastRoom, 1 << 30}}, ""},
		"a byte less":      {[]Disk{well, {"backups", 1<<30 + LeastRoom - 1, 1 << 30}}, "on the disk of the backups: 1.1 GiB are free"},
		"into the reserve": {[]Disk{{"data", 512 << 20, 1 << 30}, well}, "data: 512.0 MiB are free, and backups leave 1.0 GiB"},
		"nothing at all":   {[]Disk{{"data", 0, 0}}, "0 B are free"},
	} {
		reason, cramped := Cramped(c.disks)
		if cramped != (c.says != "") || !strings.Contains(reason.Message, c.says) {
			t.Errorf("%s: %+v", name, reason)
		}
		status := StatusOf(Observed{PostgresConnected: true, PoolerRunning: true, CapacityKnown: true, Reasons: []Reason{reason}})
		if cramped && (reason.Code != BackupsFull || status != Degraded) {
			t.Errorf("%s: %s is %s", name, reason.Code, status)
		}
	}
}
