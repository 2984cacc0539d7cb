package artifact

import (
	"context"

	"github.com/pgherd/pgherd/agent/diskroom"
)

// A database that is restored may be much larger than the one whose place it takes: that may have been emptied. So its file
// counts too. A database takes at least about twice what its compressed text does; the reservation grows with the copy where it
// takes more. What is hardly more than repetition is compressed so well that the bound of a copy must be far higher.
const (
	fileGrows     = 2
	fileGrowsMost = 64 // of which the copy may take copyLimit times as much, if there is room
)

// reserveLoad waits until there is room for the copy.
func (c *claim) reserveLoad(ctx context.Context, file int64) error {
	if err := c.release(ctx, ""); err != nil { // what an earlier attempt could not give back
		return err
	}
	live, err := c.b.reservations.sizeOf(ctx, c.req.Database)
	if err != nil {
		return err
	}
	_, data, err := c.b.disks()
	if err != nil {
		return err
	}
	c.limit = copyLimit * copySize(max(live, fileGrowsMost*file))
	return c.take(ctx, []diskroom.Reservation{{
		Claimant: c.claimant(), Purpose: diskroom.Copy, Disk: diskroom.Disk(data.ID), Waiting: true,
		Bytes: copySize(max(live, fileGrows*file)), Lasting: &diskroom.Lasting{Account: c.account},
	}}, false)
}
