package person

import (
	"time"

	"github.com/pgherd/pgherd/core/id"
	"github.com/pgherd/pgherd/core/token"
)

// DeviceLife is how long a device is known after a log-in on it: as long as browsers keep anything.
const DeviceLife = 400 * 24 * time.Hour

// KnownContext is what a sealed Known is bound to.
const KnownContext = "device"

// Known is a device on which a person has logged in. The device keeps it, sealed, so that others who try to log in as that person
// cannot keep the person out there. It opens nothing by itself.
type Known struct {
	Device   string     `json:"device"` // its random name
	UserID   id.UserID  `json:"userId"`
	Password token.Hash `json:"password"` // of what is stored of the person's password
	Until    time.Time  `json:"until"`
}

// Remembered is a device after a log-in, or a change of the password, on it.
func Remembered(device string, of id.UserID, passwordHash string, now time.Time) Known {
	return Known{Device: device, UserID: of, Password: token.Of(passwordHash), Until: now.Add(DeviceLife)}
}

// Knows reports whether the device is still known as the person's. After another password none is: who knew the old one may have
// logged in on many.
func (k Known) Knows(user id.UserID, passwordHash string, now time.Time) bool {
	return k.UserID == user && k.Password == token.Of(passwordHash) && now.Before(k.Until)
}
