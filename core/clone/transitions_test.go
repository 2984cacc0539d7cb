package clone

import (
	"slices"
	"testing"

	"github.com/pgherd/pgherd/core/stage"
)

// No way out leaves a record in between.
func TestEveryEndSettlesTheRecord(t *testing.T) {
	record := map[stage.Stage]string{stage.Succeeded: OpenRecord, stage.Failed: RemoveRecord, stage.Canceled: RemoveRecord}
	for from, row := range Machine.Table {
		for e, cell := range row {
			if want := record[cell.Next]; want != "" && from != cell.Next && !slices.Contains(cell.Effects, want) {
				t.Errorf("%s/%s leads to %s without %q", from, e, cell.Next, want)
			}
		}
	}
}
