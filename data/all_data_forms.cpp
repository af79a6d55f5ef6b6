// Written by scripts/collect.py from data/sets/.
// clang-format off
#include "data/form.h"

namespace tutti::data {

extern const DataForm csv_form;
extern const DataForm images_form;
extern const DataForm fashion_mnist_form;
extern const DataForm fashion_mnist_enlarged_form;
extern const DataForm idx_form;
extern const DataForm npz_form;
extern const DataForm orientation_form;
extern const DataForm safetensors_form;
extern const DataForm shapes_form;
extern const DataForm synthetic_form;
extern const DataForm synthetic_clicks_form;
extern const DataForm synthetic_table_form;
extern const DataForm synthetic_triplets_form;
extern const DataForm synthetic_text_form;
extern const DataForm text_form;
static constexpr const DataForm* records[] = {
    &csv_form,
    &images_form,
    &fashion_mnist_form,
    &fashion_mnist_enlarged_form,
    &idx_form,
    &npz_form,
    &orientation_form,
    &safetensors_form,
    &shapes_form,
    &synthetic_form,
    &synthetic_clicks_form,
    &synthetic_table_form,
    &synthetic_triplets_form,
    &synthetic_text_form,
    &text_form,
};

std::span<const DataForm* const> all_data_forms() { return records; }

}  // namespace tutti::data
