package access

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
)

// MaxDeleteDocument bounds the body of DeleteObjects, in bytes: a thousand keys, each character of them escaped.
const MaxDeleteDocument = 4 << 20

const maxDeleted = 1000

// CheckDelete judges the body of a DeleteObjects: Garage overlooks what it does not know, such as the version or the
// conditions of a deletion, and deletes the object that is there. The error is an Error.
func CheckDelete(document string) error {
	decoder := xml.NewDecoder(strings.NewReader(document))
	if err := expectStart(decoder, "Delete"); err != nil {
		return err
	}
	for objects := 0; ; {
		token, err := decoder.Token()
		if err != nil {
			return ErrMalformedXML
		}
		switch element := token.(type) {
		case xml.EndElement:
			return checkRest(decoder, objects)
		case xml.StartElement:
			if err := checkDeleteElement(decoder, element, &objects); err != nil {
				return err
			}
		}
	}
}

func checkDeleteElement(decoder *xml.Decoder, element xml.StartElement, objects *int) error {
	switch element.Name.Local {
	case "Object":
		*objects++
		return checkDeleted(decoder)
	case "Quiet":
		return skip(decoder)
	}
	return ErrMalformedXML
}

// checkDeleted judges one Object of the document, up to its end.
func checkDeleted(decoder *xml.Decoder) error {
	for keys := 0; ; {
		token, err := decoder.Token()
		if err != nil {
			return ErrMalformedXML
		}
		switch element := token.(type) {
		case xml.EndElement:
			if keys != 1 {
				return ErrMalformedXML
			}
			return nil
		case xml.StartElement:
			var value string
			if decoder.DecodeElement(&value, &element) != nil {
				return ErrMalformedXML
			}
			if element.Name.Local == "Key" {
				keys++
			}
			if err := checkDeletedField(element.Name.Local, value); err != nil {
				return err
			}
		}
	}
}

func checkDeletedField(name, value string) error {
	switch name {
	case "Key":
		if value == "" {
			return ErrMalformedXML
		}
		if len(value) > MaxKey {
			return ErrKeyTooLong
		}
		return nil
	case "VersionId":
		if value != "" && value != nullID {
			return ErrNoSuchVersion
		}
		return nil
	case "ETag", "LastModifiedTime", "Size":
		return ErrNotImplemented.With("Conditional deletes are not implemented: " + name)
	}
	return ErrMalformedXML
}

func expectStart(decoder *xml.Decoder, name string) error {
	for {
		token, err := decoder.Token()
		if err != nil {
			return ErrMalformedXML
		}
		if element, ok := token.(xml.StartElement); ok {
			if element.Name.Local != name {
				return ErrMalformedXML
			}
			return nil
		}
	}
}

func skip(decoder *xml.Decoder) error {
	if decoder.Skip() != nil {
		return ErrMalformedXML
	}
	return nil
}

// checkRest allows nothing more of substance behind the document.
func checkRest(decoder *xml.Decoder, objects int) error {
	if objects > maxDeleted {
		return ErrMalformedXML
	}
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if _, start := token.(xml.StartElement); err != nil || start {
			return ErrMalformedXML
		}
	}
}
