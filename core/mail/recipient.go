package mail

import (
	"github.com/pgherd/pgherd/core/account"
	"github.com/pgherd/pgherd/core/ascii"
)

// CheckRecipient returns VALIDATION_ERROR on "email" for what is no address, or has blanks around it. Letter case
// does not matter.
func CheckRecipient(address string) error {
	stored, err := account.ValidateEmail(address)
	if err == nil && !ascii.Equal(stored, address) {
		err = account.ErrNoAddress()
	}
	return err
}
