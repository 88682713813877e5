package browser

import (
	"bytes"
	"cmp"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"slices"
)

const mostColors = 256

// Small is a picture with as many colours as fit into one byte a pixel: a page has few, besides the edges of letters.
func Small(picture []byte) ([]byte, error) {
	decoded, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		return nil, fmt.Errorf("decode the picture: %w", err)
	}
	bounds := decoded.Bounds()
	used := map[color.RGBA]int{}
	at := func(x, y int) color.RGBA { return color.RGBAModel.Convert(decoded.At(x, y)).(color.RGBA) } //nolint:forcetypeassert // it is what the model makes
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			used[at(x, y)]++
		}
	}
	common := slices.SortedFunc(maps.Keys(used), func(a, b color.RGBA) int {
		return cmp.Or(cmp.Compare(used[b], used[a]), cmp.Compare(key(a), key(b)))
	})
	var palette color.Palette
	for _, each := range common[:min(mostColors, len(common))] {
		palette = append(palette, each)
	}
	small := image.NewPaletted(bounds, palette)
	nearest := map[color.RGBA]uint8{}
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			each := at(x, y)
			index, known := nearest[each]
			if !known {
				index = uint8(palette.Index(each)) //nolint:gosec // there are 256
				nearest[each] = index
			}
			small.SetColorIndex(x, y, index)
		}
	}
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, small); err != nil {
		return nil, fmt.Errorf("encode the picture: %w", err)
	}
	return out.Bytes(), nil
}

func key(c color.RGBA) int { return int(c.R)<<16 | int(c.G)<<8 | int(c.B) }
