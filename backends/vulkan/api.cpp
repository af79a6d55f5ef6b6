#include "backends/vulkan/api.h"

#include <fmt/format.h>

#include "core/os/library.h"

namespace tutti::vulkan {
namespace {

#ifdef _WIN32
constexpr const char *loader_name = "vulkan-1.dll",
                     *advice = "install the GPU vendor's driver, which brings the loader",
                     *newer = "install a newer driver";
#else
constexpr const char *loader_name = "libvulkan.so.1",
                     *advice = "install the package libvulkan1 and a driver (mesa-vulkan-drivers, or the GPU vendor's)",
                     *newer = "install a newer libvulkan1";
#endif

}  // namespace

Api Api::load() {
  std::string why;
  os::Library loader = os::open_library(loader_name, why);  // never closed, like every library of a plugin
  if (!loader)
    throw Error(Code::declined, fmt::format("the Vulkan loader {} cannot be opened ({})", loader_name, why), advice);
  Api api;
  api.GetInstanceProcAddr = reinterpret_cast<PFN_vkGetInstanceProcAddr>(os::symbol_of(loader, "vkGetInstanceProcAddr"));
  if (!api.GetInstanceProcAddr)
    throw Error(Code::declined, fmt::format("{} has no vkGetInstanceProcAddr", loader_name), advice);
  auto global = [&](const char* name) { return api.GetInstanceProcAddr(nullptr, name); };
  api.CreateInstance = reinterpret_cast<PFN_vkCreateInstance>(global("vkCreateInstance"));
  api.EnumerateInstanceVersion = reinterpret_cast<PFN_vkEnumerateInstanceVersion>(global("vkEnumerateInstanceVersion"));
  api.EnumerateInstanceLayerProperties =
      reinterpret_cast<PFN_vkEnumerateInstanceLayerProperties>(global("vkEnumerateInstanceLayerProperties"));
  uint32_t version = VK_API_VERSION_1_0;
  if (api.EnumerateInstanceVersion) api.EnumerateInstanceVersion(&version);
  if (!api.CreateInstance || !api.EnumerateInstanceLayerProperties || version < VK_API_VERSION_1_2)
    throw Error(Code::declined,
                fmt::format("the Vulkan loader supports version {}.{}, but 1.2 is needed",
                            VK_API_VERSION_MAJOR(version), VK_API_VERSION_MINOR(version)),
                newer);
  return api;
}

void Api::take(VkInstance instance) {
  auto get = [&](const char* name) {
    PFN_vkVoidFunction function = GetInstanceProcAddr(instance, name);
    if (!function) throw Error(Code::declined, fmt::format("the Vulkan loader has no {}", name), newer);
    return function;
  };
#define TUTTI_VULKAN_TAKE(name) name = reinterpret_cast<PFN_vk##name>(get("vk" #name));
  TUTTI_VULKAN_FUNCTIONS(TUTTI_VULKAN_TAKE)
#undef TUTTI_VULKAN_TAKE
}

std::string result_name(VkResult result) {
  switch (result) {
    case VK_SUCCESS: return "VK_SUCCESS";
    case VK_NOT_READY: return "VK_NOT_READY";
    case VK_TIMEOUT: return "VK_TIMEOUT";
    case VK_ERROR_OUT_OF_HOST_MEMORY: return "VK_ERROR_OUT_OF_HOST_MEMORY";
    case VK_ERROR_OUT_OF_DEVICE_MEMORY: return "VK_ERROR_OUT_OF_DEVICE_MEMORY";
    case VK_ERROR_INITIALIZATION_FAILED: return "VK_ERROR_INITIALIZATION_FAILED";
    case VK_ERROR_DEVICE_LOST: return "VK_ERROR_DEVICE_LOST";
    case VK_ERROR_MEMORY_MAP_FAILED: return "VK_ERROR_MEMORY_MAP_FAILED";
    case VK_ERROR_LAYER_NOT_PRESENT: return "VK_ERROR_LAYER_NOT_PRESENT";
    case VK_ERROR_EXTENSION_NOT_PRESENT: return "VK_ERROR_EXTENSION_NOT_PRESENT";
    case VK_ERROR_FEATURE_NOT_PRESENT: return "VK_ERROR_FEATURE_NOT_PRESENT";
    case VK_ERROR_INCOMPATIBLE_DRIVER: return "VK_ERROR_INCOMPATIBLE_DRIVER";
    case VK_ERROR_TOO_MANY_OBJECTS: return "VK_ERROR_TOO_MANY_OBJECTS";
    case VK_ERROR_FRAGMENTED_POOL: return "VK_ERROR_FRAGMENTED_POOL";
    case VK_ERROR_OUT_OF_POOL_MEMORY: return "VK_ERROR_OUT_OF_POOL_MEMORY";
    default: return fmt::format("VkResult {}", static_cast<int>(result));
  }
}

void check(VkResult result, const std::string& what) {
  if (result >= 0) return;
  std::string message = fmt::format("vulkan: {}: {}", what, result_name(result));
  switch (result) {
    case VK_ERROR_OUT_OF_HOST_MEMORY:
    case VK_ERROR_OUT_OF_DEVICE_MEMORY: throw Error(Code::no_memory, message);
    case VK_ERROR_DEVICE_LOST:
      throw Error(
          Code::device_lost, message,
          "the session cannot be used any more: open a new one, and see the system log for the driver's messages");
    default: throw Error(Code::internal, message);
  }
}

}  // namespace tutti::vulkan
